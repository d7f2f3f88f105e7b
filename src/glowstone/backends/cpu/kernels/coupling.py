"""Couplings of the probabilities of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import PairwiseCoupling
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

WORD_BYTES = 8
FLOPS_PER_ELEMENT = 2000
"""Of the matrix of pairs: some ten rounds of scalar code take about as long as this much arithmetic in vectors."""


@emits(PairwiseCoupling)
class CouplingKernels(KernelFamily):
    """One row after the other; the matrix, its products and the flag of the row are in scratch."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y = instruction.operands[0]
        rows, classes = y.shape
        cost = target.cost(FLOPS_PER_ELEMENT * rows * classes * classes, 0)
        units, per_unit = row_division(rows, cost)
        return KernelCall(KernelKey.of(instruction), units, 1, WORD_BYTES * classes * (classes + 2), cost, (per_unit,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.coupling import Coupling

        Coupling(emitter).emit()
