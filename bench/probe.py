"""Measurements inside one fresh process that concern Glowstone alone. Prints one JSON object.

Usage: python bench/probe.py compile MODEL INPUTS.npz      seconds of compile and of the first ten runs
       python bench/probe.py memory MODEL INPUTS.npz       the memory plan
       python bench/probe.py shapes MODEL NAME SHAPE ...   what each new shape (1x3x48x320) takes
       python bench/probe.py overhead MODEL INPUTS.npz     seconds of a call through bind and through run
"""

from __future__ import annotations

import json
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import glowstone

_CALLS = 2000
_REPETITIONS = 30
_SETTLED = 9  # of the new shapes; after the tenth no kernel may be compiled


def load(file: str) -> dict[str, Any]:
    with np.load(file) as stored:
        return dict(stored)


def compile_bound(model: str, inputs: dict[str, Any]) -> tuple[Any, float]:
    """The model compiled for the shapes of the inputs, on one thread, and the seconds it took."""
    shapes = {name: array.shape for name, array in inputs.items()}
    begin = time.perf_counter()
    compiled = glowstone.compile(model, shapes=shapes, threads=1)
    return compiled, time.perf_counter() - begin


def measure_compile(model: str, inputs_file: str) -> dict[str, Any]:
    inputs = load(inputs_file)
    compiled, seconds = compile_bound(model, inputs)
    runs = []
    for _ in range(10):
        begin = time.perf_counter()
        compiled.run(inputs)
        runs.append(time.perf_counter() - begin)
    return {"compile_s": seconds, "runs_s": runs}


def measure_memory(model: str, inputs_file: str) -> dict[str, Any]:
    compiled, _ = compile_bound(model, load(inputs_file))
    memory: dict[str, Any] = compiled.report()["memory"]
    return memory


def measure_shapes(model: str, name: str, *shapes: str) -> dict[str, Any]:
    parsed = [tuple(map(int, shape.split("x"))) for shape in shapes]
    compiled = glowstone.compile(model, shapes={name: parsed[0]}, threads=1)
    generator = np.random.default_rng(0)
    compiled.run({name: generator.standard_normal(parsed[0], dtype=np.float32)})
    extra, kernels = [], []
    for shape in parsed[1:]:
        array = generator.standard_normal(shape, dtype=np.float32)
        begin = time.perf_counter()
        compiled.run({name: array})
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        compiled.run({name: array})
        extra.append(first - (time.perf_counter() - begin))
        kernels.append(compiled.report()["counters"]["kernels_compiled"])
    counters = compiled.report()["counters"]
    late = kernels[-1] - kernels[_SETTLED]
    return {"specialize_s": extra, "templates": counters["templates"], "late_kernels": late}


def measure_overhead(model: str, inputs_file: str) -> dict[str, Any]:
    inputs = load(inputs_file)
    compiled, _ = compile_bound(model, inputs)

    def best(call: Callable[[], object]) -> float:
        return min(timeit.repeat(call, number=_CALLS, repeat=_REPETITIONS)) / _CALLS

    return {"bind_s": best(compiled.bind(inputs)), "run_s": best(lambda: compiled.run(inputs))}


def main() -> None:
    measure, *arguments = sys.argv[1:]
    probes: dict[str, Callable[..., dict[str, Any]]] = {
        "compile": measure_compile,
        "memory": measure_memory,
        "shapes": measure_shapes,
        "overhead": measure_overhead,
    }
    print(json.dumps(probes[measure](*arguments)))


if __name__ == "__main__":
    main()
