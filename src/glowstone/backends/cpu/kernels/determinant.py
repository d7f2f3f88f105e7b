"""Determinants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Determinant
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

WORD_BYTES = 8
FLOPS_PER_STEP = 8
"""One element of an elimination takes about as long as this much arithmetic in vectors."""


@emits(Determinant)
class DeterminantKernels(KernelFamily):
    """One matrix after the other, eliminated in a float64 copy in scratch."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y, x = instruction.operands
        key = KernelKey.of(instruction)
        if y.size == 0:
            return KernelCall(key, 0, derived=(0,))
        size = x.shape[1]
        cost = target.cost(FLOPS_PER_STEP * y.size * (size**3 + 1), x.element.size * x.size)
        units, per_unit = row_division(y.size, cost)
        return KernelCall(key, units, 1, WORD_BYTES * size * size, cost, (per_unit,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.determinant import emit_determinant

        emit_determinant(emitter)
