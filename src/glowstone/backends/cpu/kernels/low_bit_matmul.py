"""Matrix products with packed weights of few bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import LowBitMatMul
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

COLUMNS = 4
"""Columns whose sums are carried side by side for one row."""
UNPACKING_FLOPS = 8
"""Work to make a float of a packed number."""
ROWS_PER_UNPACKING = 4
"""Rows that share it."""


@emits(LowBitMatMul)
class LowBitMatMulKernels(KernelFamily):
    """Units are groups of columns: weights are read once, and unpacked in registers for a few rows at a time."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y, a, weights, *_ = instruction.operands
        key = KernelKey.of(instruction)
        if y.size == 0:
            return KernelCall(key, 0, derived=(0,))
        depth, groups = a.shape[1], -(-y.shape[1] // COLUMNS)
        passes = -(-y.shape[0] // ROWS_PER_UNPACKING)
        flops = (2 * y.shape[0] + UNPACKING_FLOPS * passes) * y.shape[1] * depth
        cost = target.cost(flops, weights.size + a.element.size * (a.size + y.size))
        units, per_unit = row_division(groups, cost)
        return KernelCall(key, units, 1, 0, cost, (per_unit,))

    def tile(self, instruction: Instruction, target: Target) -> str:
        return f"{ROWS_PER_UNPACKING} rows x {COLUMNS // 2} columns, 1 row x {COLUMNS} columns"

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.low_bit_matmul import emit_low_bit_matmul

        assert isinstance(key.operation, LowBitMatMul)
        emit_low_bit_matmul(emitter, key.operation, COLUMNS, ROWS_PER_UNPACKING)
