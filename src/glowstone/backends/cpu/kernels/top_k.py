"""The largest or smallest elements of a row: by insertion where few are asked for, else by merging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import InnerStride, KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.loop_nest import row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import TopK
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

INSERTION, MERGE = "insertion", "merge"
LONGEST_INSERTION = 16
"""Elements kept in order while a row is read once; more are cheaper to sort."""
FLOPS = 32
"""Of one comparison, which waits for loads."""
POSITION_BYTES = 8


@emits(TopK)
class TopKKernels(KernelFamily):
    """Keyed by the algorithm. Scratch holds positions: the best K, or four times as many."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        values, _, x = instruction.operands
        count = values.shape[1]
        form = INSERTION if count <= LONGEST_INSERTION else MERGE
        operands = tuple(OperandKey(view.element, view.rank, InnerStride.ANY) for view in instruction.operands)
        key = KernelKey(instruction.operation, operands, 0, (form,))
        if values.size == 0:
            return KernelCall(key, 0, derived=(0,))
        passes = 1 if form == INSERTION else 1 + count.bit_length()
        cost = target.cost(FLOPS * passes * x.size, x.element.size * x.size)
        units, rows = row_division(x.shape[0] * x.shape[2], cost)
        scratch = POSITION_BYTES * (count if form == INSERTION else 4 * count)
        return KernelCall(key, units, 1, scratch, cost, (rows,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.top_k import emit_top_k

        assert isinstance(key.operation, TopK)
        emit_top_k(emitter, key.operation, by_insertion=key.variant[0] == INSERTION)
