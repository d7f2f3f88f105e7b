"""Bodies of products with packed weights."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.product import LeftRows, Panel, ProductEmitter, Results
from glowstone.backends.cpu.ir_types import F32, Value
from glowstone.backends.cpu.product_tile import ProductTile
from glowstone.scalar import Expression

Y, A, B, FIRST_EXTRA = range(4)
ROWS_PER_UNIT, PANELS_PER_UNIT, PANEL_GROUPS = range(3)


def emit_packed_matmul(emitter: Emitter, panel: int, epilogue: Expression | None) -> None:
    """Units are (rows, panels): rows stay in the cache while weights stream by, panel by panel."""
    product = ProductEmitter(emitter, ProductTile.of(emitter.target, panel), epilogue)
    rows, columns, depth = emitter.extent(Y, 0), emitter.extent(Y, 1), emitter.extent(A, 1)
    outputs = [Y, *range(FIRST_EXTRA, len(emitter.key.operands))]
    panel_size = emitter.mul(depth, panel)
    with emitter.for_units() as units:
        chunk, group = emitter.divmod(units.index, emitter.derived(PANEL_GROUPS))
        first_row = emitter.mul(chunk, emitter.derived(ROWS_PER_UNIT))
        row_count = emitter.minimum(emitter.derived(ROWS_PER_UNIT), emitter.sub(rows, first_row))
        first_panel = emitter.mul(group, emitter.derived(PANELS_PER_UNIT))
        last_panel = emitter.minimum(emitter.add(first_panel, emitter.derived(PANELS_PER_UNIT)), emitter.extent(B, 0))
        row_stride = emitter.stride(A, 0)
        left = LeftRows(emitter.strided(emitter.pointer(A), F32, (first_row, row_stride)), row_stride, 1)
        with emitter.for_range(first_panel, last_panel) as panels:
            column = emitter.mul(panels.index, panel)
            weights = Panel(emitter.strided(emitter.pointer(B), F32, (panels.index, panel_size)), panel)
            operands = [_standing_at(emitter, operand, first_row, column) for operand in outputs]
            strides = [emitter.stride(operand, 0) for operand in outputs]
            results = Results(operands, strides, emitter.sub(columns, column))
            following = emitter.offset(weights.pointer, panel_size)
            product.emit_rows(left, weights, depth, results, row_count, following)


def _standing_at(emitter: Emitter, operand: int, row: Value, column: Value) -> InnerOperand:
    """A result or extra operand at a row and column."""
    key = emitter.key.operands[operand]
    stride = emitter.stride(operand, 1)
    pointer = emitter.strided(emitter.pointer(operand), F32, (row, emitter.stride(operand, 0)), (column, stride))
    return InnerOperand(emitter, key.element, key.inner, pointer, stride)
