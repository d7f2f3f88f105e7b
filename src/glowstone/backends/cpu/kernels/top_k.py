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
INSERTION_FLOPS = 32
MERGE_FLOPS = 128
"""Of one comparison: it waits for two loads, and the branch is taken at random."""
POSITION_BYTES = 8


@emits(TopK)
class TopKKernels(KernelFamily):
    """Keyed by the algorithm. Scratch holds the positions sorted so far: K of them, or two times all of a row."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        values, _, x = instruction.operands
        count, length = values.shape[1], x.shape[1]
        form = INSERTION if count <= LONGEST_INSERTION else MERGE
        operands = tuple(OperandKey(view.element, view.rank, InnerStride.ANY) for view in instruction.operands)
        key = KernelKey(instruction.operation, operands, 0, (form,))
        levels = (length - 1).bit_length() if length else 0
        if values.size == 0:
            return KernelCall(key, 0, derived=(0, levels))
        flops = INSERTION_FLOPS if form == INSERTION else MERGE_FLOPS * levels
        units, rows = row_division(x.shape[0] * x.shape[2], target.cost(flops * x.size, x.element.size * x.size))
        scratch = POSITION_BYTES * (count if form == INSERTION else 2 * length)
        cost = target.cost(flops * x.size, x.element.size * x.size)
        return KernelCall(key, units, 1, scratch, cost, (rows, levels))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.top_k import emit_top_k

        assert isinstance(key.operation, TopK)
        emit_top_k(emitter, key.operation, by_insertion=key.variant[0] == INSERTION)
