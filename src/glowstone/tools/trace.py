"""Times of every instruction, in the trace format that Chrome, Perfetto and Speedscope show.

In: a compiled model and inputs. Out: a trace as plain data. The table of calls runs one instruction at a time on one
thread, so times say what an instruction costs by itself: there is no overlap and no sharing between threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from glowstone.api import Model
from glowstone.api.report import algorithm, kernel_name
from glowstone.lir import Instruction
from glowstone.lir.printer import print_view
from glowstone.table import KernelCall
from glowstone.tools.stepping import run_stepwise

Array = np.ndarray[Any, np.dtype[Any]]

_RUNS: Final = 5
"""Whole runs; the shortest time of each instruction counts."""
_PROCESS: Final = 1
_THREAD: Final = 1


def trace_model(model: Model, inputs: Mapping[str, Array], runs: int = _RUNS) -> dict[str, Any]:
    """A trace with one event for each instruction, one behind the other, named by the ONNX nodes that it came from.

    Args:
        model: compiled at the shapes of the inputs.
        inputs: an array by input name.
        runs: how often the whole model runs; each instruction's shortest time is told.
    """
    model, left = model.specialized(inputs)
    best: dict[int, int] = {}

    def step(number: int, run: Callable[[], None]) -> None:
        begin = time.perf_counter_ns()
        run()
        elapsed = time.perf_counter_ns() - begin
        best[number] = min(elapsed, best.get(number, elapsed))

    for _ in range(runs):
        plan, _ = run_stepwise(model, left, step)
    events = [_name_event("process_name", "glowstone"), _name_event("thread_name", "instructions")]
    now = 0
    for number, (instruction, call) in enumerate(zip(plan.instructions, plan.calls, strict=True)):
        if number not in best:
            continue  # inside control flow, which is one event
        events.append(_event(number, instruction, call, now, best[number]))
        now += best[number]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _name_event(kind: str, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": _THREAD, "args": {"name": name}}


def _event(number: int, instruction: Instruction, call: KernelCall, begin: int, elapsed: int) -> dict[str, Any]:
    """A complete event; begin and elapsed in nanoseconds, which the format wants as microseconds."""
    operation = instruction.operation.name
    return {
        "name": ", ".join(instruction.names) or operation,
        "cat": operation,
        "ph": "X",
        "ts": begin / 1000,
        "dur": elapsed / 1000,
        "pid": _PROCESS,
        "tid": _THREAD,
        "args": {
            "instruction": number,
            "algorithm": algorithm(call.key, operation),
            "kernel": kernel_name(call),
            "units": call.units,
            "expected_us": call.cost / 1000,
            "operands": [print_view(view) for view in instruction.operands],
        },
    }
