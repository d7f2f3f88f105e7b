"""Kernels of weighted sums at places that a table names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import InnerStride, KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.loop_nest import column_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.resampling import Resample
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS_PER_TAP = 30
"""Reading index and weight takes about as long as this much arithmetic."""
POINTS, RUNS = "points", "runs"
ANY_COUNT = 0
"""Instead of the number of taps in a key: it is read at run time."""
MOST_UNROLLED = 4


@emits(Resample)
class ResampleKernels(KernelFamily):
    """Keyed by whether there is an inner axis, and by few taps; a unit takes some places of one (n, c)."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y, _, indices, _ = instruction.operands
        form = POINTS if y.shape[3] == 1 else RUNS
        operands = tuple(
            OperandKey(view.element, view.rank, InnerStride.ONE if number < 2 else InnerStride.ANY)
            for number, view in enumerate(instruction.operands)
        )
        taps = indices.shape[2]
        key = KernelKey(instruction.operation, operands, 0, (form, taps if taps <= MOST_UNROLLED else ANY_COUNT))
        if y.size == 0:
            return KernelCall(key, 0, derived=(0, 0))
        lines, places, inner = y.shape[0] * y.shape[1], y.shape[2], y.shape[3]
        flops = lines * places * taps * (FLOPS_PER_TAP + inner)
        cost = target.cost(flops, (1 + taps) * y.element.size * y.size)
        units, grain, per_unit, chunks = column_division(lines, places, cost)
        return KernelCall(key, units, grain, 0, cost, (per_unit, chunks))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.resampling import emit_resample

        form, taps = key.variant
        emit_resample(emitter, form == POINTS, int(taps))
