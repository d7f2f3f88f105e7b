"""Reductions, softmax and layer normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import (
    InnerStride,
    KernelFamily,
    KernelKey,
    OperandKey,
    emits,
    require_elements,
)
from glowstone.backends.cpu.loop_nest import column_division, row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Reduce
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

ROWS, COLUMNS = "rows", "columns"
NUMBERS = tuple(element for element in ElementType if element.is_float or element.is_integer)


def plan_outer(instruction: Instruction, target: Target, flops: int, inner: int) -> KernelCall:
    """The call of a kernel that works along axis 1 of operand 1: along rows where `inner` is 1, else down columns.

    `flops` are per element of operand 1. Inner strides 0 of other operands are compiled in; the rest are 1.
    """
    y, x = instruction.operands[:2]
    form = ROWS if inner == 1 else COLUMNS
    operands = tuple(
        OperandKey(view.element, view.rank, _inner(view.strides[-1]) if form == COLUMNS else InnerStride.ONE)
        for view in instruction.operands
    )
    key = KernelKey(instruction.operation, operands, len(instruction.integers), (form,))
    if y.size == 0:
        return KernelCall(key, 0, derived=(0,) if form == ROWS else (0, 0))
    cost = target.cost(flops * x.size + y.size, x.element.size * x.size + y.element.size * y.size)
    if form == ROWS:
        units, rows = row_division(y.shape[0], cost)
        return KernelCall(key, units, 1, 0, cost, (rows,))
    units, grain, columns, chunks = column_division(y.shape[0], inner, cost)
    return KernelCall(key, units, grain, 0, cost, (columns, chunks))


def _inner(stride: int) -> InnerStride:
    return InnerStride.ZERO if stride == 0 else InnerStride.ONE


@emits(Reduce)
class ReduceKernels(KernelFamily):
    """Keyed by whether the reduced axis is the contiguous one."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, *NUMBERS)
        assert isinstance(instruction.operation, Reduce)
        flops = 1 + expression_flops(instruction.operation.epilogue)
        return plan_outer(instruction, target, flops, instruction.operands[0].shape[1])

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.reduce import emit_reduce_columns, emit_reduce_rows

        assert isinstance(key.operation, Reduce)
        (emit_reduce_rows if key.variant[0] == ROWS else emit_reduce_columns)(emitter, key.operation)
