"""What every instruction of a compiled model takes, against what the machine could do.

In: a compiled model and inputs. Out: `InstructionProfile`s, and the machine's limits, which are measured here for this
display and used for nothing else.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from glowstone.api import Model
from glowstone.api.report import algorithm
from glowstone.backends.cpu.native.limits import (
    ACCUMULATORS,
    ARITHMETIC_SYMBOL,
    LINE_BYTES,
    READ_SYMBOL,
    emit_limits,
)
from glowstone.backends.cpu.target import Target
from glowstone.lir import Instruction
from glowstone.runtime.arena import aligned_bytes
from glowstone.runtime.executable import address_of
from glowstone.runtime.loader import load_object
from glowstone.tools.stepping import run_stepwise

Array = np.ndarray[Any, np.dtype[Any]]

_RUNS: Final = 9
"""Whole runs, one after another, so that weights are as cold as in a model; the median of each instruction counts."""
_TRIES: Final = 7
_ROUNDS: Final = 1_000_000
_READ_BYTES: Final = 256 << 20
"""More than caches hold."""


@dataclass(frozen=True)
class Limits:
    """Most of one thread, measured: float32 operations and bytes read from memory, per nanosecond."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class InstructionProfile:
    """One instruction. `flops` counts two for each product that is added up, by the operation's definition, so an
    algorithm that needs fewer, such as Winograd's, may be above the arithmetic limit; `moved` are bytes of operands.
    """

    number: int
    name: str
    operation: str
    algorithm: str
    tile: str
    nanoseconds: float
    flops: int
    moved: int

    @property
    def flops_rate(self) -> float:
        """GFLOP/s."""
        return self.flops / self.nanoseconds

    @property
    def byte_rate(self) -> float:
        """GB/s."""
        return self.moved / self.nanoseconds

    def share(self, limits: Limits) -> float:
        """The larger of the shares of the arithmetic and the bandwidth limit; caches may be above the latter."""
        return max(self.flops_rate / limits.flops, self.byte_rate / limits.bytes)

    def as_dict(self, limits: Limits) -> dict[str, Any]:
        """Plain data, with rates and the share."""
        rates = {"gflop_per_s": self.flops_rate, "gb_per_s": self.byte_rate, "share_of_limit": self.share(limits)}
        return vars(self) | rates


@dataclass(frozen=True)
class Profile:
    """All instructions of a model, and the limits of the machine."""

    instructions: Sequence[InstructionProfile]
    limits: Limits

    @property
    def nanoseconds(self) -> float:
        """Of all instructions."""
        return sum(one.nanoseconds for one in self.instructions)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        rows = [one.as_dict(self.limits) for one in self.instructions]
        return {"limits": {"gflop_per_s": self.limits.flops, "gb_per_s": self.limits.bytes}, "instructions": rows}


def profile_model(model: Model, inputs: Mapping[str, Array], runs: int = _RUNS) -> list[InstructionProfile]:
    """Run the model instruction by instruction on one thread.

    Args:
        model: compiled at the shapes of the inputs.
        inputs: an array by input name.
        runs: how often the whole model runs; each instruction's median time is told.
    """
    model, left = model.specialized(inputs)
    times: dict[int, list[int]] = {}

    def step(number: int, run: Callable[[], None]) -> None:
        begin = time.perf_counter_ns()
        run()
        times.setdefault(number, []).append(time.perf_counter_ns() - begin)

    for _ in range(runs):
        plan, _ = run_stepwise(model, left, step)
    planner = model.engine.settings.backend.planner
    return [
        InstructionProfile(
            number,
            ", ".join(instruction.names),
            instruction.operation.name,
            algorithm(call.key, instruction.operation.name),
            planner.tile(instruction),
            float(np.median(times[number])),
            2 * instruction.operation.multiply_adds(instruction.operands),
            _moved(instruction),
        )
        for number, (instruction, call) in enumerate(zip(plan.instructions, plan.calls, strict=True))
    ]


def measure_limits(target: Target) -> Limits:
    """What one thread of this machine does at most; takes about a quarter of a second."""
    loaded = load_object(emit_limits(target))
    arithmetic = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(loaded.symbols[ARITHMETIC_SYMBOL])
    read = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(loaded.symbols[READ_SYMBOL])
    result, memory = aligned_bytes(LINE_BYTES), aligned_bytes(_READ_BYTES)
    result[:], memory[:] = 0, 0
    flops = 2 * ACCUMULATORS * target.float_lanes * _ROUNDS
    begin, lines, out = address_of(memory), _READ_BYTES // LINE_BYTES, address_of(result)
    return Limits(
        flops / _best(lambda: arithmetic(_ROUNDS, out)),
        _READ_BYTES / _best(lambda: read(begin, lines, out)),
    )


def _moved(instruction: Instruction) -> int:
    """Bytes that are read or written, each operand counted once; an axis of stride 0 is one element."""
    return sum(
        view.element.size
        * int(np.prod([extent for extent, stride in zip(view.shape, view.strides, strict=True) if stride]))
        for view in instruction.operands
    )


def _best(call: Callable[[], None]) -> float:
    """Nanoseconds of the fastest of some calls."""
    found = []
    for _ in range(_TRIES):
        begin = time.perf_counter_ns()
        call()
        found.append(time.perf_counter_ns() - begin)
    return float(min(found))
