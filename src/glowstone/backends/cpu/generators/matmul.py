"""Bodies of general float32 matrix products: columns of the right matrix are brought side by side, then as packed ones.

Where rows of the right matrix are contiguous, whole panels are read in place; a last partial panel, and panels of a
matrix with contiguous columns (by transposing blocks in registers), are copied to scratch first.
"""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.product import FLOAT_BYTES, LeftRows, Panel, ProductEmitter, Results
from glowstone.backends.cpu.generators.transpose import emit_transpose
from glowstone.backends.cpu.ir_types import F32, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.product_tile import ProductTile
from glowstone.scalar import Expression

Y, A, B, FIRST_EXTRA = range(4)
ROWS_PER_UNIT, PANELS_PER_UNIT, ROW_CHUNKS, PANEL_GROUPS = range(4)
ROWS_CONTIGUOUS, COLUMNS_CONTIGUOUS = "rows", "columns"


def emit_matmul(emitter: Emitter, panel: int, right: str, epilogue: Expression | None) -> None:
    """Units are (batch, rows, panels)."""
    tile = ProductTile.of(emitter.target, panel)
    product = ProductEmitter(emitter, tile, epilogue)
    outputs = [Y, *range(FIRST_EXTRA, len(emitter.key.operands))]
    rows, columns, depth = emitter.extent(Y, -2), emitter.extent(Y, -1), emitter.extent(A, -1)
    with emitter.for_units() as units:
        rest, group = emitter.divmod(units.index, emitter.derived(PANEL_GROUPS))
        batch, chunk = emitter.divmod(rest, emitter.derived(ROW_CHUNKS))
        starts = batch_starts(emitter, batch)
        first_row = emitter.mul(chunk, emitter.derived(ROWS_PER_UNIT))
        row_count = emitter.minimum(emitter.derived(ROWS_PER_UNIT), emitter.sub(rows, first_row))
        first_column = emitter.mul(emitter.mul(group, emitter.derived(PANELS_PER_UNIT)), panel)
        here = emitter.mul(emitter.derived(PANELS_PER_UNIT), panel)
        last_column = emitter.minimum(columns, emitter.add(first_column, here))
        row_stride = emitter.stride(A, -2)
        depth_stride = 1 if emitter.key.operands[A].inner is InnerStride.ONE else emitter.stride(A, -1)
        left = LeftRows(emitter.strided(starts[A], F32, (first_row, row_stride)), row_stride, depth_stride)
        with emitter.for_range(first_column, last_column, panel) as panels:
            width = emitter.sub(columns, panels.index)
            corner = emitter.strided(starts[B], F32, (panels.index, emitter.stride(B, -1)))
            strides = emitter.stride(B, -2), emitter.stride(B, -1)
            side_by_side = PanelSource(emitter, tile, corner, strides, depth, width, emitter.scratch).emit(right)
            operands = [standing_at(emitter, operand, starts[operand], first_row, panels.index) for operand in outputs]
            pitches = [emitter.stride(operand, -2) for operand in outputs]
            product.emit_rows(left, side_by_side, depth, Results(operands, pitches, width), row_count)


def batch_starts(emitter: Emitter, batch: Value) -> list[Value]:
    """First element of every operand in a batch."""
    axes = range(emitter.key.operands[Y].rank - 2)
    coordinates = emitter.unravel(batch, [emitter.extent(Y, axis) for axis in axes]) if axes else []
    return [
        emitter.strided(
            emitter.pointer(operand),
            F32,
            *((place, emitter.stride(operand, axis)) for axis, place in enumerate(coordinates)),
        )
        for operand in range(len(emitter.key.operands))
    ]


def standing_at(emitter: Emitter, operand: int, start: Value, row: Value, column: Value) -> InnerOperand:
    """A result or extra operand at a row and column."""
    key, stride = emitter.key.operands[operand], emitter.stride(operand, -1)
    pointer = emitter.strided(start, F32, (row, emitter.stride(operand, -2)), (column, stride))
    return InnerOperand(emitter, key.element, key.inner, pointer, stride)


class PanelSource:
    """Brings one panel's columns of a right matrix side by side.

    `corner` is its first element, `strides` are those of depth and columns, `width` the columns from there on; `memory`
    has room for a panel.
    """

    def __init__(
        self,
        emitter: Emitter,
        tile: ProductTile,
        corner: Value,
        strides: tuple[Value, Value],
        depth: Value,
        width: Value,
        memory: Value,
    ) -> None:
        self._emitter = emitter
        self._tile = tile
        self._corner = corner
        self._depth_stride, self._column_stride = strides
        self._depth = depth
        self._width = width
        self._memory = memory

    def emit(self, right: str) -> Panel:
        """The panel, in place or in memory."""
        emitter, panel = self._emitter, self._tile.panel
        if right == ROWS_CONTIGUOUS:
            is_whole = emitter.compare(self._width, ">=", panel)
            with emitter.if_true(emitter.builder.not_(is_whole)):
                self._copy_masked()
            pointer = emitter.select(is_whole, self._corner, self._memory)
            return Panel(pointer, emitter.select(is_whole, self._depth_stride, emitter.i64(panel)))
        whole = emitter.i64(0)
        if right == COLUMNS_CONTIGUOUS:
            lanes = self._tile.lanes
            whole = emitter.mul(emitter.div(self._depth, lanes), lanes)
            self._copy_transposed(whole)
        with emitter.if_true(emitter.compare(whole, "<", self._depth)):
            self._copy_single(whole)
        return Panel(self._memory, panel)

    def _line(self, depth: Value) -> Value:
        """Where a position of the depth stands in memory."""
        return self._emitter.strided(self._memory, F32, (depth, self._tile.panel))

    def _column(self, column: Value | int) -> Value:
        """First element of a column; columns beyond the last repeat it, and what they give is never stored."""
        emitter = self._emitter
        inside = emitter.minimum(column, emitter.sub(self._width, 1))
        return emitter.strided(self._corner, F32, (inside, self._column_stride))

    def _copy_masked(self) -> None:
        emitter, panel = self._emitter, self._tile.panel
        mask = emitter.first_lanes(self._width, panel)
        with emitter.for_range(0, self._depth) as loop:
            source = emitter.strided(self._corner, F32, (loop.index, self._depth_stride))
            values = emitter.masked_load(source, mask, emitter.zeros(panel))
            emitter.store_floats(values, self._line(loop.index))

    def _copy_transposed(self, whole: Value) -> None:
        """Depth up to `whole`, a multiple of the lanes."""
        emitter, lanes = self._emitter, self._tile.lanes
        with emitter.for_range(0, self._tile.panel, lanes) as block:
            columns = [self._column(emitter.add(block.index, lane)) for lane in range(lanes)]
            with emitter.for_range(0, whole, lanes) as loop:
                vectors = [emitter.load_floats(emitter.offset(column, loop.index), lanes) for column in columns]
                for step, line in enumerate(emit_transpose(emitter, vectors)):
                    start = self._line(emitter.add(loop.index, step))
                    emitter.store_floats(line, emitter.offset(start, block.index))

    def _copy_single(self, first: Value) -> None:
        """Depth from `first` on, element by element."""
        emitter = self._emitter
        with emitter.for_range(0, self._tile.panel) as column:
            start = self._column(column.index)
            with emitter.for_range(first, self._depth) as loop:
                source = emitter.strided(start, F32, (loop.index, self._depth_stride))
                target = emitter.offset(self._line(loop.index), column.index)
                emitter.store(emitter.load(source, F32, FLOAT_BYTES), target, FLOAT_BYTES)
