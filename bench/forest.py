"""A forest of 500 trees against ONNX Runtime, calls of both in turn.

Usage: python bench/forest.py [--trees 500] [--repeats 30]

Prints, for batches of 1, 100 and 10,000 rows and 1 and 2 threads, the median microseconds of a call of each and their
ratio. Needs scikit-learn and skl2onnx besides onnxruntime.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import glowstone

SAMPLES, FEATURES, CLASSES = 5000, 20, 3
BATCHES = (1, 100, 10_000)
THREADS = (1, 2)
SECONDS = 3.0
"""Of one comparison, at most."""


def forest(trees: int) -> Any:
    """A random forest as an ONNX model."""
    x, y = make_classification(SAMPLES, FEATURES, n_informative=10, n_classes=CLASSES, random_state=0)
    x = x.astype(np.float32)
    model = RandomForestClassifier(trees, random_state=0, n_jobs=-1).fit(x, y)
    return to_onnx(model, x[:1], options={"zipmap": False})


def session(model: Any, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def medians(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median microseconds of each call, made in turn."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    begin = time.perf_counter()
    while len(times[0]) < repeats or time.perf_counter() - begin < min(SECONDS, 1e-3 * repeats):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(1e6 * (time.perf_counter() - start))
    return [float(np.median(taken)) for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    model = forest(arguments.trees)
    name = model.graph.input[0].name
    print(f"{'rows':>6} {'threads':>7} {'glowstone':>12} {'onnxruntime':>12} {'ratio':>6}")
    for threads in THREADS:
        compiled, reference = glowstone.compile(model, threads=threads), session(model, threads)
        for rows in BATCHES:
            feeds = {name: np.random.default_rng(rows).standard_normal((rows, FEATURES)).astype(np.float32)}
            mine, theirs = list(compiled.run(feeds).values()), reference.run(None, feeds)
            np.testing.assert_allclose(mine[1], theirs[1], atol=1e-5)
            calls = (functools.partial(compiled.run, feeds), functools.partial(reference.run, None, feeds))
            own, other = medians(calls, arguments.repeats)
            print(f"{rows:6} {threads:7} {own:10.1f} us {other:10.1f} us {own / other:6.2f}")


if __name__ == "__main__":
    main()
