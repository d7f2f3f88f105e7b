"""Bodies of pooling over regions: one element at a time, for neighbours differ from point to point."""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.indexing import checked_index, emit_lines
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import emit_cast, float_builder
from glowstone.backends.cpu.math.vector_builder import VectorBuilder
from glowstone.lir.operations.regions import LARGEST_GRID, RoiAlign, RoiPool
from glowstone.table import StatusCode
from glowstone.types import ElementType

Y, X, REGIONS, IMAGES = range(4)
ROW_AXIS, COLUMN_AXIS = 2, 3
IMAGE, LEFT, TOP, RIGHT, BOTTOM = range(5)
"""Columns of regions that name their image."""


class _Numbers:
    """Conversions between i64 and the float type that coordinates are computed in."""

    def __init__(self, emitter: Emitter, element: ElementType) -> None:
        self.emitter = emitter
        self.math: VectorBuilder = float_builder(emitter, element, 1)

    def to_float(self, number: Value) -> Value:
        return self.emitter.builder.sitofp(number, self.math.type)

    def to_integer(self, number: Value) -> Value:
        """Truncated; saturating, NaN gives 0."""
        return emit_cast(self.emitter, number, self.math.element, ElementType.I64, 1)

    def within(self, number: Value, low: Value | int, high: Value | int) -> Value:
        """An i64 moved into [low, high]."""
        return self.emitter.maximum(self.emitter.minimum(number, high), low)


@dataclass(frozen=True)
class _Axis:
    """The cells of a region along one axis: where it begins, the extent of a cell, and points in a cell."""

    start: Value
    step: Value
    points: Value


@dataclass(frozen=True)
class _Neighbours:
    """Two elements, the weight of each, and whether the point counts."""

    places: tuple[Value, Value]
    weights: tuple[Value, Value]
    inside: Value


def emit_roi_align(emitter: Emitter, operation: RoiAlign) -> None:
    """Every cell of every region: the mean or the largest of its points."""
    element = emitter.key.operands[X].element
    numbers = _Numbers(emitter, element)
    extents = [emitter.extent(Y, axis) for axis in range(COLUMN_AXIS)]
    with emit_lines(emitter, extents) as (unit, (region, channel, row)):
        images = operand_at(emitter, IMAGES, 0, InnerStride.ONE)
        image, _ = checked_index(emitter, images, region, emitter.extent(X, 0), unit)
        x = operand_at(emitter, X, COLUMN_AXIS, InnerStride.ONE, (0, image), (1, channel))
        y = operand_at(emitter, Y, COLUMN_AXIS, InnerStride.ONE, (0, region), (1, channel), (ROW_AXIS, row))
        corners = operand_at(emitter, REGIONS, 1, InnerStride.ONE, (0, region))
        left, top, right, bottom = (corners.load(emitter.i64(place), 1) for place in range(4))
        vertical = _axis(numbers, operation, top, bottom, emitter.extent(Y, ROW_AXIS))
        horizontal = _axis(numbers, operation, left, right, emitter.extent(Y, COLUMN_AXIS))
        with emitter.for_range(0, emitter.extent(Y, COLUMN_AXIS)) as columns:
            cell = _Cell(numbers, operation, x, (vertical, horizontal), (row, columns.index))
            y.store(Arithmetic(emitter, element, 1).rounded(cell.value()), columns.index, 1)


def _axis(numbers: _Numbers, operation: RoiAlign, low: Value, high: Value, cells: Value) -> _Axis:
    math, builder = numbers.math, numbers.emitter.builder
    offset = math.constant(0.5 if operation.half_pixel else 0.0)
    start, end = (builder.fsub(builder.fmul(corner, math.constant(operation.scale)), offset) for corner in (low, high))
    size = builder.fsub(end, start)
    if not operation.half_pixel:
        size = math.at_least(size, 1.0)
    step = builder.fdiv(size, numbers.to_float(cells))
    points = numbers.emitter.i64(operation.points)
    if operation.points == 0:
        points = numbers.within(numbers.to_integer(math.unary("ceil", step)), 0, LARGEST_GRID)
    return _Axis(start, step, points)


@dataclass(frozen=True)
class _Cell:
    """One cell: an image's channel, the two axes of its region, and its coordinates."""

    numbers: _Numbers
    operation: RoiAlign
    image: InnerOperand
    axes: tuple[_Axis, _Axis]
    coordinates: tuple[Value, Value]

    def value(self) -> Value:
        """The number to store, not yet rounded."""
        emitter, math = self.numbers.emitter, self.numbers.math
        vertical, horizontal = self.axes
        is_mean = self.operation.mode == "average"
        initial = math.constant(0.0 if is_mean else float("-inf"))
        with emitter.for_range(0, vertical.points, carried=[initial]) as rows:
            row = self._neighbours(0, rows.index, emitter.extent(X, ROW_AXIS))
            with emitter.for_range(0, horizontal.points, carried=[rows.values[0]]) as columns:
                column = self._neighbours(1, columns.index, emitter.extent(X, COLUMN_AXIS))
                columns.carry([self._combine(columns.values[0], row, column)])
            rows.carry([columns.results[0]])
        count = emitter.mul(vertical.points, horizontal.points)
        result = rows.results[0]
        if is_mean:
            result = emitter.builder.fdiv(result, self.numbers.to_float(emitter.maximum(count, 1)))
        return emitter.select(emitter.compare(count, ">", 0), result, math.constant(0.0))

    def _neighbours(self, axis: int, point: Value, extent: Value) -> _Neighbours:
        """What a point along one axis lies between."""
        numbers, math, emitter = self.numbers, self.numbers.math, self.numbers.emitter
        builder = emitter.builder
        cells = self.axes[axis]
        begin = builder.fadd(cells.start, builder.fmul(numbers.to_float(self.coordinates[axis]), cells.step))
        middle = builder.fadd(numbers.to_float(point), math.constant(0.5))
        away = builder.fdiv(builder.fmul(middle, cells.step), numbers.to_float(cells.points))
        place = builder.fadd(begin, away)
        is_low = builder.fcmp_ordered("<", place, math.constant(-1.0))
        is_high = builder.fcmp_ordered(">", place, numbers.to_float(extent))
        inside = builder.not_(builder.or_(is_low, is_high))
        place = math.at_least(place, 0.0)
        last = emitter.sub(extent, 1)
        low = numbers.within(numbers.to_integer(place), 0, last)
        fraction = builder.fsub(place, numbers.to_float(low))
        fraction = emitter.select(emitter.compare(low, ">=", last), math.constant(0.0), fraction)
        weights = (builder.fsub(math.constant(1.0), fraction), fraction)
        return _Neighbours((low, emitter.minimum(emitter.add(low, 1), last)), weights, inside)

    def _combine(self, total: Value, row: _Neighbours, column: _Neighbours) -> Value:
        """The total with one point added, or the larger of both."""
        emitter, math, builder = self.numbers.emitter, self.numbers.math, self.numbers.emitter.builder
        terms = []
        for place, weight in zip(row.places, row.weights, strict=True):
            line = self.image.moved(emitter.mul(place, emitter.stride(X, ROW_AXIS)))
            for other, factor in zip(column.places, column.weights, strict=True):
                terms.append(builder.fmul(builder.fmul(weight, factor), line.load(other, 1)))
        arithmetic = Arithmetic(emitter, math.element, 1)
        join = arithmetic.add if self.operation.mode == "average" else arithmetic.larger
        point = join(join(join(terms[0], terms[1]), terms[2]), terms[3])
        counts = builder.and_(row.inside, column.inside)
        return join(total, emitter.select(counts, point, math.constant(0.0)))


@dataclass(frozen=True)
class RegionPooling:
    """The largest element of every cell."""

    emitter: Emitter
    operation: RoiPool

    def emit(self) -> None:
        emitter = self.emitter
        element = emitter.key.operands[X].element
        numbers = _Numbers(emitter, element)
        extents = [emitter.extent(Y, axis) for axis in range(COLUMN_AXIS)]
        with emit_lines(emitter, extents) as (unit, (region, channel, row)):
            corners = operand_at(emitter, REGIONS, 1, InnerStride.ONE, (0, region))
            image = self._image(numbers, corners, unit)
            x = operand_at(emitter, X, COLUMN_AXIS, InnerStride.ONE, (0, image), (1, channel))
            y = operand_at(emitter, Y, COLUMN_AXIS, InnerStride.ONE, (0, region), (1, channel), (ROW_AXIS, row))
            rows = self._range(numbers, corners, (TOP, BOTTOM), row, ROW_AXIS)
            with emitter.for_range(0, emitter.extent(Y, COLUMN_AXIS)) as columns:
                part = self._range(numbers, corners, (LEFT, RIGHT), columns.index, COLUMN_AXIS)
                y.store(self._largest(x, rows, part), columns.index, 1)

    def _image(self, numbers: _Numbers, corners: InnerOperand, unit: Value) -> Value:
        """The number of the image; one out of range is reported and counts as 0."""
        emitter = self.emitter
        given = numbers.to_integer(corners.load(emitter.i64(IMAGE), 1))
        extent = emitter.extent(X, 0)
        index = emitter.select(emitter.compare(given, "<", 0), emitter.add(given, extent), given)
        is_bad = emitter.builder.icmp_unsigned(">=", index, extent)
        emitter.report(is_bad, unit, StatusCode.INDEX_OUT_OF_RANGE, given)
        return emitter.select(is_bad, emitter.i64(0), index)

    def _range(
        self, numbers: _Numbers, corners: InnerOperand, places: tuple[int, int], cell: Value, axis: int
    ) -> tuple[Value, Value]:
        """First element of a cell and the one behind its last."""
        emitter, math, builder = self.emitter, numbers.math, self.emitter.builder
        low, high = (self._rounded(math, corners.load(emitter.i64(place), 1)) for place in places)
        size = math.at_least(builder.fadd(builder.fsub(high, low), math.constant(1.0)), 1.0)
        step = builder.fdiv(size, numbers.to_float(emitter.extent(Y, axis)))
        first = math.unary("floor", builder.fmul(numbers.to_float(cell), step))
        last = math.unary("ceil", builder.fmul(numbers.to_float(emitter.add(cell, 1)), step))
        extent = emitter.extent(X, axis)
        start, end = (numbers.within(numbers.to_integer(builder.fadd(at, low)), 0, extent) for at in (first, last))
        return start, end

    def _rounded(self, math: VectorBuilder, corner: Value) -> Value:
        """The corner in pixels, halves away from zero."""
        scaled = math.ir.fmul(corner, math.constant(self.operation.scale))
        magnitude = math.ir.fadd(math.unary("fabs", scaled), math.constant(0.5))
        return math.copy_sign(math.unary("floor", magnitude), scaled)

    def _largest(self, x: InnerOperand, rows: tuple[Value, Value], columns: tuple[Value, Value]) -> Value:
        """The largest element of a box; 0 of an empty one."""
        emitter = self.emitter
        arithmetic = Arithmetic(emitter, x.element, 1)
        with emitter.for_range(*rows, carried=[arithmetic.lowest()]) as lines:
            line = x.moved(emitter.mul(lines.index, emitter.stride(X, ROW_AXIS)))
            with emitter.for_range(*columns, carried=[lines.values[0]]) as places:
                places.carry([arithmetic.larger(places.values[0], line.load(places.index, 1))])
            lines.carry([places.results[0]])
        has_rows, has_columns = (emitter.compare(first, "<", last) for first, last in (rows, columns))
        return emitter.select(emitter.both(has_rows, has_columns), lines.results[0], arithmetic.constant(0))
