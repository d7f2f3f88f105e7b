"""The inner part of matrix products: one tile of sums over the whole depth, then its epilogue.

Whole tiles, and powers of two for what is left of the rows, have a loop over the depth each. A whole tile with a short
epilogue is finished in registers. All other sums leave through a small buffer on the stack, from which one loop, with
the one copy of a long epilogue, applies it and stores rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.ir_types import F32, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.product_tile import ProductTile
from glowstone.backends.cpu.vector_math import emit_expression
from glowstone.scalar import Expression

SUMS_IN_FLIGHT = 8
"""Independent accumulators that hide the latency of multiply-add: with few rows, the depth is split among more sums."""
SHORT_EPILOGUE_FLOPS = 8
"""Up to here a copy of the epilogue for every vector of a tile is little code."""
FLOAT_BYTES = 4


@dataclass(frozen=True)
class LeftRows:
    """Rows of the left matrix: the first element, and strides in elements."""

    pointer: Value
    row_stride: Value
    depth_stride: Value | int


@dataclass(frozen=True)
class Panel:
    """Columns of the right matrix, side by side; `depth_stride` elements from one position of the depth to the next."""

    pointer: Value
    depth_stride: Value | int


@dataclass(frozen=True)
class Results:
    """Result and extra operands at the first row and column of a tile, and how many columns are there."""

    operands: Sequence[InnerOperand]
    row_strides: Sequence[Value]
    columns: Value

    def at_row(self, row: Value) -> list[InnerOperand]:
        """The operands at a row further down."""
        pairs = zip(self.operands, self.row_strides, strict=True)
        return [operand.moved(operand.emitter.mul(row, stride)) for operand, stride in pairs]


class ProductEmitter:
    """Emits tiles of one kernel."""

    def __init__(self, emitter: Emitter, tile: ProductTile, epilogue: Expression | None) -> None:
        self._emitter = emitter
        self._tile = tile
        self._epilogue = epilogue
        self._finishes_in_registers = expression_flops(epilogue) <= SHORT_EPILOGUE_FLOPS
        self._sums = emitter.stack(F32, tile.rows * tile.panel)

    def emit_rows(self, left: LeftRows, panel: Panel, depth: Value, results: Results, rows: Value) -> None:
        """All tiles of `rows` rows in one panel of columns."""
        emitter, tile = self._emitter, self._tile
        mask = emitter.first_lanes(results.columns, tile.panel)
        is_whole_panel = emitter.compare(results.columns, ">=", tile.panel)
        pieces = emitter.div(rows, tile.rows)
        rest = emitter.rem(rows, tile.rows)
        for size in tile.tail_rows:
            pieces = emitter.add(pieces, emitter.rem(emitter.div(rest, size), 2))
        with emitter.for_range(0, pieces, carried=[emitter.i64(0)]) as loop:
            first = loop.values[0]
            here = self._piece_rows(emitter.sub(rows, first))
            pointer = emitter.strided(left.pointer, F32, (first, left.row_stride))
            tile_left = LeftRows(pointer, left.row_stride, left.depth_stride)
            for count in (tile.rows, *tile.tail_rows):
                with emitter.if_true(emitter.compare(here, "==", count)):
                    self._emit_piece(tile_left, panel, depth, results, count, first, is_whole_panel)
            finished = emitter.i64(0)
            if self._finishes_in_registers:
                is_whole = emitter.both(emitter.compare(here, "==", tile.rows), is_whole_panel)
                finished = emitter.select(is_whole, here, finished)
            with emitter.for_range(finished, here) as row:
                self._finish_row(results, row.index, emitter.add(first, row.index), mask, is_whole_panel)
            loop.carry([emitter.add(first, here)])

    def _piece_rows(self, left: Value) -> Value:
        """Rows of the next piece, when so many are left: a whole tile, or the largest power of two."""
        emitter, tile = self._emitter, self._tile
        here = emitter.i64(1)
        for size in (*reversed(tile.tail_rows), tile.rows):
            here = emitter.select(emitter.compare(left, ">=", size), emitter.i64(size), here)
        return here

    def _emit_piece(
        self,
        left: LeftRows,
        panel: Panel,
        depth: Value,
        results: Results,
        rows: int,
        first: Value,
        is_whole_panel: Value,
    ) -> None:
        """Sums of so many rows: a whole tile of a whole panel finished where the epilogue is short, else kept."""
        if rows < self._tile.rows:
            self._keep(self._emit_sums(left, panel, depth, rows))
            return
        self._prefetch(results, first, rows)
        sums = self._emit_sums(left, panel, depth, rows)
        if self._finishes_in_registers:
            self._finish_tile(results, sums, first, is_whole_panel)
        else:
            self._keep(sums)

    def _emit_sums(self, left: LeftRows, panel: Panel, depth: Value, rows: int) -> list[Value]:
        """The sums of so many rows, row by row."""
        emitter, tile = self._emitter, self._tile
        splits = max(1, SUMS_IN_FLIGHT // (rows * tile.vectors))
        pointers = [emitter.strided(left.pointer, F32, (row, left.row_stride)) for row in range(rows)]
        zero = emitter.zeros(tile.lanes)
        sums = [zero] * (splits * rows * tile.vectors)
        whole = emitter.mul(emitter.div(depth, splits), splits) if splits > 1 else depth
        with emitter.for_range(0, whole, splits, carried=sums) as loop:
            current = list(loop.values)
            for split in range(splits):
                part = slice(split * rows * tile.vectors, (split + 1) * rows * tile.vectors)
                place = emitter.add(loop.index, split) if split else loop.index
                current[part] = self._step(pointers, left.depth_stride, panel, place, current[part])
            loop.carry(current)
        totals = _add_splits(emitter, loop.results, splits)
        if splits == 1:
            return totals
        with emitter.for_range(whole, depth, carried=totals) as rest:
            rest.carry(self._step(pointers, left.depth_stride, panel, rest.index, rest.values))
        return rest.results

    def _step(
        self, pointers: Sequence[Value], stride: Value | int, panel: Panel, place: Value, sums: Sequence[Value]
    ) -> list[Value]:
        """One position of the depth: every row's element times the panel's vectors."""
        emitter, tile = self._emitter, self._tile
        line = emitter.strided(panel.pointer, F32, (place, panel.depth_stride))
        columns = [
            emitter.load_floats(emitter.offset(line, vector * tile.lanes), tile.lanes) for vector in range(tile.vectors)
        ]
        offset = emitter.mul(place, stride)
        following = []
        for row, pointer in enumerate(pointers):
            single = emitter.load(emitter.offset(pointer, offset), F32, FLOAT_BYTES)
            element = emitter.splat(single, tile.lanes)
            for vector, column in enumerate(columns):
                following.append(emitter.multiply_add(element, column, sums[row * tile.vectors + vector]))
        return following

    def _prefetch(self, results: Results, first_row: Value, rows: int) -> None:
        """Ask for what the epilogue will touch: the sums take long enough for it to arrive.

        Only the line with the last element: the one before came with the panel before.
        """
        last = self._tile.panel - 1
        for row in range(rows):
            for operand in results.at_row(self._emitter.add(first_row, row)):
                if operand.inner is InnerStride.ONE:
                    self._emitter.prefetch(self._emitter.offset(operand.pointer, last))

    def _keep(self, sums: Sequence[Value]) -> None:
        """Sums to the buffer."""
        for number, value in enumerate(sums):
            self._emitter.store_floats(value, self._emitter.offset(self._sums, number * self._tile.lanes))

    def _finish_tile(self, results: Results, sums: Sequence[Value], first_row: Value, is_whole: Value) -> None:
        """Epilogue and store of a whole tile from registers; of a partial panel, sums to the buffer."""
        emitter, tile = self._emitter, self._tile
        with emitter.if_else(is_whole) as (then, otherwise):
            with then:
                for row in range(tile.rows):
                    y, *extras = results.at_row(emitter.add(first_row, row))
                    for vector in range(tile.vectors):
                        start = emitter.i64(vector * tile.lanes)
                        loaded = [extra.load(start, tile.lanes) for extra in extras]
                        value = self._finished(sums[row * tile.vectors + vector], loaded, tile.lanes)
                        y.store(value, start, tile.lanes)
            with otherwise:
                self._keep(sums)

    def _finish_row(self, results: Results, row: Value, place: Value, mask: Value, is_whole: Value) -> None:
        """Epilogue and store of one row of the buffer; `place` counts rows from the first of `results`."""
        emitter, panel = self._emitter, self._tile.panel
        value = emitter.load_floats(emitter.strided(self._sums, F32, (row, panel)), panel)
        y, *extras = results.at_row(place)
        start = emitter.i64(0)
        value = self._finished(value, [extra.load(start, panel, mask) for extra in extras], panel)
        with emitter.if_else(is_whole) as (then, otherwise):
            with then:
                y.store(value, start, panel)
            with otherwise:
                y.store(value, start, panel, mask)

    def _finished(self, value: Value, extras: Sequence[Value], lanes: int) -> Value:
        if self._epilogue is None:
            return value
        return emit_expression(self._emitter, self._epilogue, [value, *extras], lanes)


def _add_splits(emitter: Emitter, sums: Sequence[Value], splits: int) -> list[Value]:
    """Sums over the parts of the depth, pairwise."""
    size = len(sums) // splits
    parts = [list(sums[split * size : (split + 1) * size]) for split in range(splits)]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [[emitter.builder.fadd(x, y) for x, y in zip(*pair, strict=True)] for pair in pairs]
    return parts[0]
