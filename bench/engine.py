"""One engine with one model in a process of its own, driven over its standard input and output.

Usage: python bench/engine.py ENGINE MODEL INPUTS.npz THREADS [--constants FILE.npz] [--tuning FILE]

INPUTS.npz holds every input with one more axis in front: the pool of values, of which every call takes the next. Prints
one JSON object when ready, then answers each line that it reads: `run SECONDS` and `bind SECONDS` with the latencies of
calls in a row, `outputs FILE` after writing the outputs for the first value, `rss` with resident bytes now and at the
peak. Between two lines it is blocked, so that engines driven in turn do not disturb each other. Ends with its input.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from peers import ENGINES, Array, Job, Prepared

KILOBYTE = 1024


def resident_bytes() -> int:
    """Resident memory of this process now; its peak where the system does not tell."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return peak_bytes()


def peak_bytes() -> int:
    """The most memory that was resident. `getrusage` would count what the process that started this one had."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * KILOBYTE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE


class Caller:
    """Calls a prepared model with fresh values, in both forms."""

    def __init__(self, prepared: Prepared, pool: Mapping[str, Array]) -> None:
        self._prepared = prepared
        size = min(len(array) for array in pool.values())
        self._pool = [{name: np.asarray(array[index]) for name, array in pool.items()} for index in range(size)]
        self._values = self._cycle()
        self._bound: Callable[[], object] | None = None

    def _cycle(self) -> Iterator[Mapping[str, Array]]:
        while True:
            yield from self._pool

    def run(self) -> float:
        """Seconds of one call that takes and returns arrays."""
        values = next(self._values)
        begin = time.perf_counter()
        self._prepared.run(values)
        return time.perf_counter() - begin

    def bind(self) -> float:
        """Seconds of one bound call; writing the values is not counted."""
        if self._bound is None:
            self._buffers, self._bound = self._prepared.bind()
        values = next(self._values)
        for name, buffer in self._buffers.items():
            np.copyto(buffer, values[name])
        begin = time.perf_counter()
        self._bound()
        return time.perf_counter() - begin

    def outputs(self) -> list[Array]:
        return self._prepared.run(self._pool[0])


def latencies(call: Callable[[], float], seconds: float) -> list[float]:
    """Seconds of each call, for as long as given, at least one."""
    found: list[float] = []
    end = time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        found.append(call())
    return found


def load(file: str | None) -> dict[str, Array]:
    if file is None:
        return {}
    with np.load(file) as stored:
        return dict(stored)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("threads", type=int)
    parser.add_argument("--constants")
    parser.add_argument("--tuning")
    arguments = parser.parse_args()
    pool = load(arguments.inputs)
    example = {name: np.asarray(array[0]) for name, array in pool.items()}
    job = Job(arguments.model, arguments.threads, example, load(arguments.constants), arguments.tuning)
    importlib.import_module(arguments.engine)
    begin = time.perf_counter()
    try:
        caller = Caller(ENGINES[arguments.engine](job), pool)
    except Exception as error:  # whatever stops an engine is shown as its result
        lines = str(error).strip().splitlines() or [type(error).__name__]
        answer({"error": lines[0]})
        return
    answer({"compile_s": time.perf_counter() - begin})
    calls = {"run": caller.run, "bind": caller.bind}
    for line in sys.stdin:
        command, *rest = line.split()
        if command in calls:
            answer({"latencies": latencies(calls[command], float(rest[0]))})
        elif command == "outputs":
            np.savez(rest[0], *caller.outputs())
            answer({})
        elif command == "rss":
            answer({"rss": resident_bytes(), "peak": peak_bytes()})


def answer(result: Mapping[str, object]) -> None:
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
