"""A window sliding along output rows: what depthwise convolution and pooling share.

In: static window, run-time extents and padding, and what to do with a tap and with a result. Out: code for one output
row (all spatial coordinates but the last are fixed). Operands 0 and 1 are y and x, spatial axes start at axis 2, the
elements of one position are `lanes` consecutive numbers. A row is cut in tiles of `TILE` positions: inside tiles are
unrolled over the whole window if it is small, else over its rows; border tiles take what lies outside from a block of
neutral elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import Type, Value, lanes_of, scalar_of

Y, X = 0, 1
FIRST_SPATIAL = 2
TILE = 4
MOST_UNROLLED_TAPS = 32
MOST_UNROLLED_COLUMNS = 16


@dataclass(frozen=True)
class Window:
    """Extents, strides and dilations, one number per spatial axis."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def taps(self) -> int:
        return math.prod(self.extents)

    @property
    def is_small(self) -> bool:
        """Whether code for every tap is worth it."""
        return self.taps <= MOST_UNROLLED_TAPS

    @property
    def is_narrow(self) -> bool:
        """Whether code for every tap of one of its rows is."""
        return self.is_small or self.extents[-1] <= MOST_UNROLLED_COLUMNS


@dataclass(frozen=True)
class Sweep:
    """What is done at each tap and with each result.

    `combine(sum, x, tap)` gives the next partial result from the elements x at tap number `tap` (row-major in the
    window); `finish(positions, results)` stores some results, each at its spatial coordinates.
    """

    initial: Value
    neutral: Value
    """Address of `lanes` elements that change nothing."""
    combine: Callable[[Value, Value, Value], Value]
    finish: Callable[[Sequence[Sequence[Value]], Sequence[Value]], None]
    is_long: bool = False
    """Whether there is to be one copy of `finish`'s code; a position may then be given twice, with one result."""


@dataclass(frozen=True)
class _Range:
    """Taps of one axis that fall inside: from `low` to below `high`; `start` is the input coordinate of tap 0."""

    start: Value
    low: Value
    high: Value


def taps_before(emitter: Emitter, start: Value, bound: Value | int, axis: int, window: Window) -> Value:
    """How many taps of an axis lie before the input coordinate `bound`, given the coordinate of tap 0."""
    distance = emitter.maximum(emitter.sub(bound, start), 0)
    return emitter.minimum(emitter.ceil_div(distance, window.dilations[axis]), window.extents[axis])


class SlidingWindow:
    """Emits the rows of one kernel."""

    def __init__(self, emitter: Emitter, window: Window, pads: Sequence[Value], vector: Type, align: int) -> None:
        self._emitter = emitter
        self._window = window
        self._pads = pads
        self._vector = vector
        self._element = scalar_of(vector)
        self._lanes = lanes_of(vector)
        self._align = align

    def row(self, source: Value, outer: Sequence[Value], sweep: Sweep) -> None:
        """One output row; `source` is the address of the input plane, `outer` the fixed coordinates."""
        ranges = [self._range(axis, coordinate) for axis, coordinate in enumerate(outer)]
        width = self._emitter.extent(Y, FIRST_SPATIAL + len(outer))
        if self._window.is_narrow:
            self._tiled_row(source, outer, ranges, width, sweep)
        else:
            with self._emitter.for_range(0, width) as columns:
                self._position(source, outer, ranges, columns.index, sweep)

    def _range(self, axis: int, coordinate: Value) -> _Range:
        emitter, window = self._emitter, self._window
        start = emitter.sub(emitter.mul(coordinate, window.strides[axis]), self._pads[axis])
        low = taps_before(emitter, start, 0, axis, window)
        high = taps_before(emitter, start, emitter.extent(X, FIRST_SPATIAL + axis), axis, window)
        return _Range(start, low, high)

    # Large windows: loops over the taps inside, one position at a time

    def _position(
        self, source: Value, outer: Sequence[Value], ranges: Sequence[_Range], column: Value, sweep: Sweep
    ) -> None:
        every = [*ranges, self._range(len(outer), column)]

        def innermost(plane: Value, tap: Value, results: list[Value]) -> list[Value]:
            return [sweep.combine(results[0], self._emitter.load(plane, self._vector, self._align), tap)]

        results = self._loops(source, every, 0, self._emitter.i64(0), [sweep.initial], innermost)
        sweep.finish([[*outer, column]], results)

    def _loops(
        self,
        plane: Value,
        ranges: Sequence[_Range],
        axis: int,
        tap: Value,
        results: list[Value],
        innermost: Callable[[Value, Value, list[Value]], list[Value]],
    ) -> list[Value]:
        """Loops over the taps inside, from an axis on; `innermost(address, tap, results)` gives the next results."""
        if axis == len(ranges):
            return innermost(plane, tap, results)
        emitter = self._emitter
        with emitter.for_range(ranges[axis].low, ranges[axis].high, carried=results) as loop:
            row = self._moved(plane, axis, ranges[axis].start, loop.index)
            number = emitter.add(emitter.mul(tap, self._window.extents[axis]), loop.index)
            loop.carry(self._loops(row, ranges, axis + 1, number, loop.values, innermost))
        return loop.results

    def _moved(self, plane: Value, axis: int, start: Value, tap: Value | int) -> Value:
        """The address moved to a tap of an axis."""
        emitter = self._emitter
        place = emitter.add(start, emitter.mul(tap, self._window.dilations[axis]))
        return emitter.offset(plane, emitter.mul(place, emitter.stride(X, FIRST_SPATIAL + axis)), self._element)

    # Narrow windows: tiles of positions, the last axis unrolled

    def _tiled_row(
        self, source: Value, outer: Sequence[Value], ranges: Sequence[_Range], width: Value, sweep: Sweep
    ) -> None:
        emitter, axis = self._emitter, len(outer)
        rows_inside = self._are_whole(ranges)
        rows = self._rows(source, ranges) if self._window.is_small else []
        memory = emitter.stack(self._element, TILE * self._lanes) if sweep.is_long else None

        def finish_inside(column: Value, start: Value) -> None:
            results = self._some_rows(source, ranges, start, sweep, is_checked=False)
            self._finish(outer, column, results, sweep, memory)

        with emitter.for_range(0, width, TILE) as tiles:
            column = tiles.index
            start = emitter.sub(emitter.mul(column, self._window.strides[axis]), self._pads[axis])
            with emitter.if_else(self._is_inside(column, start, width)) as (within, border):
                with within:
                    if not self._window.is_small:
                        finish_inside(column, start)
                    else:
                        with emitter.if_else(rows_inside) as (whole, part):
                            with whole:
                                self._finish(outer, column, self._unrolled(rows, start, sweep), sweep, memory)
                            with part:
                                finish_inside(column, start)
                with border:
                    results = self._some_rows(source, ranges, start, sweep, is_checked=True)
                    self._finish_some(outer, column, results, width, sweep, memory)
            if memory is not None:
                self._finish_saved(outer, column, width, sweep, memory)

    def _are_whole(self, ranges: Sequence[_Range]) -> Value:
        """Whether all taps of these axes are inside."""
        emitter = self._emitter
        inside = emitter.i64(0)
        for taps in ranges:
            inside = emitter.add(inside, emitter.sub(taps.high, taps.low))
        return emitter.compare(inside, "==", sum(self._window.extents[: len(ranges)]))

    def _is_inside(self, column: Value, start: Value, width: Value) -> Value:
        """Whether a tile's positions exist and all their columns are inside; `start` is its first input column."""
        emitter = self._emitter
        extent = emitter.extent(X, FIRST_SPATIAL + len(self._window.extents) - 1)
        end = emitter.add(start, self._columns() - 1)
        columns = emitter.both(emitter.compare(start, ">=", 0), emitter.compare(end, "<", extent))
        return emitter.both(columns, emitter.compare(emitter.add(column, TILE), "<=", width))

    def _columns(self) -> int:
        """Input columns that a tile touches, gaps of dilation counted."""
        window = self._window
        return (TILE - 1) * window.strides[-1] + (window.extents[-1] - 1) * window.dilations[-1] + 1

    def _rows(self, source: Value, ranges: Sequence[_Range]) -> list[Value]:
        """Addresses of the input rows under all rows of the window, inside or not."""
        rows = []
        shape = self._window.extents[:-1]
        for number in range(math.prod(shape)):
            row = source
            for axis, tap in enumerate(_coordinates(number, shape)):
                row = self._moved(row, axis, ranges[axis].start, tap)
            rows.append(row)
        return rows

    def _unrolled(self, rows: Sequence[Value], start: Value, sweep: Sweep) -> list[Value]:
        """A tile with all taps inside."""
        results = [sweep.initial] * TILE
        for number, row in enumerate(rows):
            results = self._columns_of(row, self._emitter.i64(number), results, start, sweep, is_checked=False)
        return results

    def _some_rows(
        self, source: Value, ranges: Sequence[_Range], start: Value, sweep: Sweep, is_checked: bool
    ) -> list[Value]:
        """A tile with loops over the rows inside."""

        def innermost(row: Value, number: Value, results: list[Value]) -> list[Value]:
            return self._columns_of(row, number, results, start, sweep, is_checked)

        return self._loops(source, ranges, 0, self._emitter.i64(0), [sweep.initial] * TILE, innermost)

    def _columns_of(
        self, row: Value, number: Value, results: list[Value], start: Value, sweep: Sweep, is_checked: bool
    ) -> list[Value]:
        """All taps in one row of the window, for a tile. Each input column is loaded once."""
        emitter, window = self._emitter, self._window
        loaded: dict[int, Value] = {}
        results = list(results)
        first = emitter.offset(row, emitter.mul(start, self._lanes), self._element)
        for tap in range(window.extents[-1]):
            at = emitter.add(emitter.mul(number, window.extents[-1]), tap)
            for position in range(TILE):
                column = position * window.strides[-1] + tap * window.dilations[-1]
                if column not in loaded:
                    loaded[column] = self._load_column(first, start, column, sweep, is_checked)
                results[position] = sweep.combine(results[position], loaded[column], at)
        return results

    def _load_column(self, first: Value, start: Value, column: int, sweep: Sweep, is_checked: bool) -> Value:
        """The elements at a column counted from column `start`, whose address is `first`. Rows are dense."""
        emitter = self._emitter
        axis = FIRST_SPATIAL + len(self._window.extents) - 1
        address = emitter.offset(first, column * self._lanes, self._element)
        if is_checked:
            # one unsigned comparison tells below 0 and beyond the end
            place = emitter.add(start, column)
            inside = emitter.builder.icmp_unsigned("<", place, emitter.extent(X, axis))
            address = emitter.select(inside, address, sweep.neutral)
        return emitter.load(address, self._vector, self._align)

    def _finish(
        self, outer: Sequence[Value], column: Value, results: Sequence[Value], sweep: Sweep, memory: Value | None
    ) -> None:
        """Store a tile, or save it for `_finish_saved`."""
        if memory is not None:
            self._save(results, memory)
        else:
            sweep.finish([[*outer, self._emitter.add(column, at)] for at in range(TILE)], results)

    def _finish_some(
        self,
        outer: Sequence[Value],
        column: Value,
        results: Sequence[Value],
        width: Value,
        sweep: Sweep,
        memory: Value | None,
    ) -> None:
        """As `_finish`, for the positions that exist."""
        if memory is not None:
            self._save(results, memory)
            return
        for position, result in enumerate(results):
            at = self._emitter.add(column, position)
            with self._emitter.if_true(self._emitter.compare(at, "<", width)):
                sweep.finish([[*outer, at]], [result])

    def _save(self, results: Sequence[Value], memory: Value) -> None:
        for position, result in enumerate(results):
            self._emitter.store(result, self._saved(memory, position), self._align)

    def _finish_saved(self, outer: Sequence[Value], column: Value, width: Value, sweep: Sweep, memory: Value) -> None:
        """Store the positions of a saved tile that exist, the last one as often as it takes."""
        emitter = self._emitter
        last = emitter.sub(emitter.minimum(emitter.sub(width, column), TILE), 1)
        places = [emitter.minimum(position, last) for position in range(TILE)]
        results = [emitter.load(self._saved(memory, place), self._vector, self._align) for place in places]
        sweep.finish([[*outer, emitter.add(column, place)] for place in places], results)

    def _saved(self, memory: Value, position: Value | int) -> Value:
        return self._emitter.offset(memory, self._emitter.mul(position, self._lanes), self._element)


def _coordinates(number: int, shape: Sequence[int]) -> list[int]:
    """Coordinates of a row-major number."""
    coordinates = []
    for extent in reversed(shape):
        number, coordinate = divmod(number, extent)
        coordinates.append(coordinate)
    return coordinates[::-1]
