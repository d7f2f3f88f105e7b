"""One engine with one model in a process of its own, driven over its standard input and output.

Usage: python bench/engine.py ENGINE MODEL INPUTS.npz THREADS

ENGINE is glowstone or onnxruntime. Prints one JSON object when ready, then answers each line that it reads:
`run SECONDS` with the latencies of calls in a row, `rss` with the resident bytes of the process. Between two lines it
is blocked, so that engines driven in turn do not disturb each other. Ends with its input.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]


def glowstone_call(model: str, inputs: Arrays, threads: int) -> Callable[[], object]:
    """A prepared call of the compiled model."""
    import glowstone

    shapes = {name: array.shape for name, array in inputs.items()}
    bound: Callable[[], object] = glowstone.compile(model, shapes=shapes, threads=threads).bind(inputs)
    return bound


def onnxruntime_call(model: str, inputs: Arrays, threads: int) -> Callable[[], object]:
    """A call with inputs and outputs bound ahead, which is the least that ONNX Runtime can be made to do."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    return lambda: session.run_with_iobinding(binding)


ENGINES = {"glowstone": glowstone_call, "onnxruntime": onnxruntime_call}


def resident_bytes() -> int:
    """Resident memory of this process now; its peak where the system does not tell."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def latencies(call: Callable[[], object], seconds: float) -> list[float]:
    """Seconds of each call, for as long as given, at least one."""
    found: list[float] = []
    begin = now = time.perf_counter()
    while not found or now - begin < seconds:
        call()
        before, now = now, time.perf_counter()
        found.append(now - before)
    return found


def main() -> None:
    engine, model, inputs_file, threads = sys.argv[1:]
    with np.load(inputs_file) as stored:
        inputs = dict(stored)
    importlib.import_module(engine)
    begin = time.perf_counter()
    call = ENGINES[engine](model, inputs, int(threads))
    ready = time.perf_counter() - begin
    answer({"compile_s": ready})
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            answer({"latencies": latencies(call, float(arguments[0]))})
        elif command == "rss":
            answer({"rss": resident_bytes()})


def answer(result: Mapping[str, object]) -> None:
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
