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
from glowstone.backends.cpu.product_tile import LINE_FLOATS, ProductTile
from glowstone.backends.cpu.vector_math import emit_expression
from glowstone.scalar import Expression

SUMS_IN_FLIGHT = 8
"""Independent accumulators that hide the latency of multiply-add: with few rows, the depth is split among more sums."""
STEPS_PER_PASS = 4
"""Positions of the depth in one pass of the loop."""
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


@dataclass(frozen=True)
class _Place:
    """A position of the depth: the address of the first row's element, and of the panel's columns."""

    element: Value
    line: Value

    @property
    def values(self) -> list[Value]:
        """What a loop carries."""
        return [self.element, self.line]

    def moved(self, emitter: Emitter, steps: int, element_stride: Value | int, line_stride: Value | int) -> _Place:
        """So many positions further on."""
        along, down = emitter.mul(element_stride, steps), emitter.mul(line_stride, steps)
        return _Place(emitter.offset(self.element, along), emitter.offset(self.line, down))


class ProductEmitter:
    """Emits tiles of one kernel."""

    def __init__(self, emitter: Emitter, tile: ProductTile, epilogue: Expression | None) -> None:
        self._emitter = emitter
        self._tile = tile
        self._epilogue = epilogue
        self._finishes_in_registers = expression_flops(epilogue) <= SHORT_EPILOGUE_FLOPS
        self._sums = emitter.stack(F32, tile.rows * tile.panel)

    def emit_rows(
        self,
        left: LeftRows,
        panel: Panel,
        depth: Value,
        results: Results,
        rows: Value,
        next_panel: Value | None = None,
    ) -> None:
        """All tiles of `rows` rows in one panel of columns.

        The first tiles ask for `next_panel`, packed weights that come from far, line by line as they compute. A single
        tile does not: it reads faster than it could ask.
        """
        emitter, tile = self._emitter, self._tile
        mask = emitter.first_lanes(results.columns, tile.panel)
        is_whole_panel = emitter.compare(results.columns, ">=", tile.panel)
        pieces = emitter.div(rows, tile.rows)
        rest = emitter.rem(rows, tile.rows)
        for size in tile.tail_rows:
            pieces = emitter.add(pieces, emitter.rem(emitter.div(rest, size), 2))
        asking = self._asking_tiles if next_panel is not None else 0
        asked = emitter.select(emitter.compare(pieces, ">", 1), emitter.i64(asking), emitter.i64(0))
        part = emitter.mul(emitter.div(depth, STEPS_PER_PASS), LINE_FLOATS)
        with emitter.for_range(0, pieces, carried=[emitter.i64(0)]) as loop:
            first = loop.values[0]
            ahead = None
            if next_panel is not None:
                asks = emitter.compare(loop.index, "<", asked)
                there = emitter.strided(next_panel, F32, (loop.index, part))
                ahead = emitter.select(asks, there, panel.pointer)
            here = self._piece_rows(emitter.sub(rows, first))
            pointer = emitter.strided(left.pointer, F32, (first, left.row_stride))
            tile_left = LeftRows(pointer, left.row_stride, left.depth_stride)
            for count in (tile.rows, *tile.tail_rows):
                with emitter.if_true(emitter.compare(here, "==", count)):
                    self._emit_piece(tile_left, panel, depth, results, count, first, is_whole_panel, ahead)
            finished = emitter.i64(0)
            if self._finishes_in_registers:
                is_whole = emitter.both(emitter.compare(here, "==", tile.rows), is_whole_panel)
                finished = emitter.select(is_whole, here, finished)
            with emitter.for_range(finished, here) as row:
                self._finish_row(results, row.index, emitter.add(first, row.index), mask, is_whole_panel)
            loop.carry([emitter.add(first, here)])

    @property
    def _asking_tiles(self) -> int:
        """How many tiles it takes to ask for a whole panel, a line in each pass."""
        return STEPS_PER_PASS * self._tile.panel // LINE_FLOATS

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
        ahead: Value | None,
    ) -> None:
        """Sums of so many rows: a whole tile of a whole panel finished where the epilogue is short, else kept."""
        if rows < self._tile.rows:
            self._keep(self._emit_sums(left, panel, depth, rows, ahead))
            return
        self._prefetch(results, first, rows)
        sums = self._emit_sums(left, panel, depth, rows, ahead)
        if self._finishes_in_registers:
            self._finish_tile(results, sums, first, is_whole_panel)
        else:
            self._keep(sums)

    def _emit_sums(self, left: LeftRows, panel: Panel, depth: Value, rows: int, ahead: Value | None) -> list[Value]:
        """The sums of so many rows, row by row; every pass asks for one of the lines from `ahead` on.

        Loops carry the address of one row. The distances of the others do not change, and an address takes no
        instruction as the sum of two registers.
        """
        emitter, tile = self._emitter, self._tile
        splits = max(1, SUMS_IN_FLIGHT // (rows * tile.vectors))
        steps = max(splits, STEPS_PER_PASS)
        distances = [emitter.mul(left.row_stride, row) for row in range(rows)]
        place = _Place(left.pointer, panel.pointer)
        strides = left.depth_stride, panel.depth_stride
        size = rows * tile.vectors
        sums = [emitter.zeros(tile.lanes)] * (splits * size)
        whole = emitter.mul(emitter.div(depth, steps), steps)
        lines = [] if ahead is None else [ahead]
        with emitter.for_range(0, whole, steps, carried=[*place.values, *sums, *lines]) as loop:
            here, current = _Place(*loop.values[:2]), loop.values[2 : 2 + len(sums)]
            asked = loop.values[2 + len(sums) :]
            for line in asked:
                emitter.prefetch(line)
            for step in range(steps):
                part = slice(step % splits * size, (step % splits + 1) * size)
                current[part] = self._step(here.moved(emitter, step, *strides), distances, current[part])
            following = [emitter.offset(line, LINE_FLOATS) for line in asked]
            loop.carry([*here.moved(emitter, steps, *strides).values, *current, *following])
        place, sums = _Place(*loop.results[:2]), _add_splits(emitter, loop.results[2 : 2 + len(sums)], splits)
        with emitter.for_range(whole, depth, carried=[*place.values, *sums]) as rest:
            here = _Place(*rest.values[:2])
            current = self._step(here, distances, rest.values[2:])
            rest.carry([*here.moved(emitter, 1, *strides).values, *current])
        return rest.results[2:]

    def _step(self, place: _Place, distances: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """One position of the depth: every row's element times the panel's vectors."""
        emitter, tile = self._emitter, self._tile
        columns = [
            emitter.load_floats(emitter.offset(place.line, vector * tile.lanes), tile.lanes)
            for vector in range(tile.vectors)
        ]
        following = []
        for row, distance in enumerate(distances):
            element = emitter.splat(emitter.load(emitter.offset(place.element, distance), F32, FLOAT_BYTES), tile.lanes)
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
