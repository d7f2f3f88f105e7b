"""General matrix products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import InnerStride, KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.product_tile import ProductDivision, ProductTile, panel_width
from glowstone.backends.cpu.target import Target
from glowstone.lir.buffer import View
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import MatMul
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

PLAIN, TILED = "plain", "tiled"
ROWS_CONTIGUOUS, COLUMNS_CONTIGUOUS, STRIDED = "rows", "columns", "strided"
PLAIN_SLOWDOWN = 10
"""How much slower than the tiled form the plain one is taken to be."""
ELEMENTS = tuple(element for element in ElementType if element.is_float or element.is_integer)


@emits(MatMul)
class MatMulKernels(KernelFamily):
    """Tiled for float32 with contiguous rows of results, keyed by the form of the right matrix; else plain."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, *ELEMENTS)
        assert isinstance(instruction.operation, MatMul)
        y, a, b, *extras = instruction.operands
        flops = (2 * a.shape[-1] + expression_flops(instruction.operation.epilogue)) * y.size
        moved = y.element.size * (a.size + b.size + (1 + len(extras)) * y.size)
        if is_tiled(instruction):
            return self._plan_tiled(instruction, target, target.cost(flops, moved))
        key = KernelKey.of(instruction, (PLAIN,))
        if y.size == 0:
            return KernelCall(key, 0, derived=(0, 0))
        cost = target.cost(flops * PLAIN_SLOWDOWN, moved)
        rows, batches = y.shape[-2], math.prod(y.shape[:-2])
        division = ProductDivision.of(rows, 1, ProductTile(1, 1, 1), cost / (rows * batches))
        derived = (division.rows_per_unit, division.row_chunks)
        return KernelCall(key, batches * division.row_chunks, 1, 0, cost, derived)

    def _plan_tiled(self, instruction: Instruction, target: Target, cost: int) -> KernelCall:
        y, _, b, *_ = instruction.operands
        panel = panel_width(target)
        key = KernelKey.of(instruction, (TILED, panel, right_form(b)))
        if y.size == 0:
            return KernelCall(key, 0, derived=(0, 0, 0, 0))
        rows, columns, batches = y.shape[-2], y.shape[-1], math.prod(y.shape[:-2])
        panels = -(-columns // panel)
        tile = ProductTile.of(target, panel)
        division = ProductDivision.of(rows, panels, tile, cost / (rows * panels * batches))
        derived = (division.rows_per_unit, division.panels_per_unit, division.row_chunks, division.panel_groups)
        scratch = 4 * panel * b.shape[-2]
        return KernelCall(key, batches * division.units, 1, scratch, cost, derived)

    def tile(self, instruction: Instruction, target: Target) -> str:
        if not is_tiled(instruction):
            return ""
        panel = panel_width(target)
        return f"{ProductTile.of(target, panel).rows} rows x {panel} columns"

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.matmul import emit_matmul
        from glowstone.backends.cpu.generators.plain_matmul import emit_plain_matmul

        assert isinstance(key.operation, MatMul)
        if key.variant[0] == PLAIN:
            emit_plain_matmul(emitter, key.operation.epilogue)
        else:
            emit_matmul(emitter, int(key.variant[1]), str(key.variant[2]), key.operation.epilogue)


def is_tiled(instruction: Instruction) -> bool:
    """Whether the instruction gets the tiled form."""
    y, _, _, *extras = instruction.operands
    if any(view.element is not ElementType.F32 for view in instruction.operands):
        return False
    return InnerStride.of(y) is InnerStride.ONE and all(InnerStride.of(x) is not InnerStride.ANY for x in extras)


def right_form(matrix: View) -> str:
    """How columns of a right matrix are brought side by side."""
    depth_stride, column_stride = matrix.strides[-2:]
    if column_stride == 1:
        return ROWS_CONTIGUOUS
    return COLUMNS_CONTIGUOUS if depth_stride == 1 else STRIDED
