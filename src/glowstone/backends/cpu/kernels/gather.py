"""Gather kernels. Keyed by element size and the type of the indices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.loop_nest import by_size, row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Gather
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS_PER_ROW = 200
"""Finding a row takes about as long as this much arithmetic."""
INDICES = 2


@emits(Gather)
class GatherKernels(KernelFamily):
    """Rows picked by index."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y, x, indices = instruction.operands
        moved = (OperandKey(by_size(view.element), view.rank) for view in (y, x))
        key = replace(KernelKey.of(instruction), operands=(*moved, OperandKey(indices.element, indices.rank)))
        if y.size == 0:
            return KernelCall(key, 0, derived=(0,))
        rows = y.shape[0] * y.shape[1]
        cost = target.cost(FLOPS_PER_ROW * rows, 2 * y.element.size * y.size)
        units, per_unit = row_division(rows, cost)
        return KernelCall(key, units, 1, 0, cost, (per_unit,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.gather import emit_gather

        emit_gather(emitter)
