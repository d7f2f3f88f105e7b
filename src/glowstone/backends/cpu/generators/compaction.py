"""Bodies of compactions: count first, then every element goes to its place, and zeros behind the last."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import flat_operand
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.math.casts import emit_cast
from glowstone.lir.operation import Operation
from glowstone.lir.operations.counted import FindNonZero, KeepSlices
from glowstone.types import ElementType

RESULT, COUNT = range(2)
X, CONDITION = 2, 3
SELECTED, COUNTS = 2, 3
COLUMNS = 3


def emit_compaction(emitter: Emitter, operation: Operation) -> None:
    """One unit."""
    with emitter.for_units():
        if isinstance(operation, FindNonZero):
            _emit_coordinates(emitter)
        elif isinstance(operation, KeepSlices):
            _emit_slices(emitter)
        else:
            _emit_rows(emitter)


def _is_set(emitter: Emitter, operand: InnerOperand, index: Value) -> Value:
    """Whether an element is not zero."""
    return emit_cast(emitter, operand.load(index, 1), operand.element, ElementType.BOOL, 1)


def _emit_count(emitter: Emitter, operand: InnerOperand, length: Value) -> Value:
    """How many of the first `length` elements are not zero; stored, too."""
    with emitter.for_range(0, length, carried=[emitter.i64(0)]) as loop:
        found = emitter.builder.zext(_is_set(emitter, operand, loop.index), I64)
        loop.carry([emitter.add(loop.values[0], found)])
    flat_operand(emitter, COUNT).store(loop.results[0], emitter.i64(0), 1)
    return loop.results[0]


def _emit_for_set(emitter: Emitter, operand: InnerOperand, length: Value, body: Callable[[Value, Value], None]) -> None:
    """`body(index, place)` for the elements that are not zero; `place` counts them."""
    with emitter.for_range(0, length, carried=[emitter.i64(0)]) as loop:
        is_set = _is_set(emitter, operand, loop.index)
        with emitter.if_true(is_set):
            body(loop.index, loop.values[0])
        loop.carry([emitter.add(loop.values[0], emitter.builder.zext(is_set, I64))])


def _emit_coordinates(emitter: Emitter) -> None:
    rank = emitter.key.operands[X].rank
    extents = [emitter.extent(X, axis) for axis in range(rank)]
    size = emitter.i64(1)
    for extent in extents:
        size = emitter.mul(size, extent)
    x, positions = flat_operand(emitter, X), flat_operand(emitter, RESULT)
    total = _emit_count(emitter, x, size)

    def place_coordinates(index: Value, place: Value) -> None:
        for axis, coordinate in enumerate(emitter.unravel(index, extents) if extents else ()):
            positions.store(coordinate, emitter.add(emitter.mul(total, axis), place), 1)

    _emit_for_set(emitter, x, size, place_coordinates)
    positions.clear(emitter.mul(total, rank), emitter.extent(RESULT, 0))


def _emit_slices(emitter: Emitter) -> None:
    outer, length, inner = (emitter.extent(X, axis) for axis in range(3))
    x, y, condition = (flat_operand(emitter, operand) for operand in (X, RESULT, CONDITION))
    total = _emit_count(emitter, condition, emitter.extent(CONDITION, 0))
    _emit_for_set(
        emitter,
        condition,
        emitter.extent(CONDITION, 0),
        lambda index, place: emit_slice(emitter, (y, total, place), (x, length, index), outer, inner),
    )
    y.clear(emitter.mul(total, emitter.mul(outer, inner)), emitter.extent(RESULT, 0))


def emit_slice(
    emitter: Emitter,
    target: tuple[InnerOperand, Value, Value],
    source: tuple[InnerOperand, Value, Value],
    outer: Value,
    inner: Value,
) -> None:
    """Copy a slice; both sides are (operand [outer, length, inner], length, position)."""
    (y, y_length, y_position), (x, x_length, x_position) = target, source
    with emitter.for_range(0, outer) as rows:
        y_row, x_row = (
            emitter.mul(emitter.add(emitter.mul(rows.index, length), position), inner)
            for length, position in ((y_length, y_position), (x_length, x_position))
        )
        with emitter.for_range(0, inner) as columns:
            y.copy_from(x, emitter.add(y_row, columns.index), emitter.add(x_row, columns.index))


def _emit_rows(emitter: Emitter) -> None:
    """Rows (image, class, box) of selected boxes."""
    room, classes = emitter.extent(SELECTED, 1), emitter.integer(0)
    rows, selected, counts = (flat_operand(emitter, operand) for operand in (RESULT, SELECTED, COUNTS))
    with emitter.for_range(0, emitter.extent(SELECTED, 0), carried=[emitter.i64(0)]) as lists:
        count = emitter.maximum(emitter.minimum(counts.load(lists.index, 1), room), 0)
        image, kind = emitter.divmod(lists.index, classes)
        with emitter.for_range(0, count) as boxes:
            place = emitter.mul(emitter.add(lists.values[0], boxes.index), COLUMNS)
            box = selected.load(emitter.add(emitter.mul(lists.index, room), boxes.index), 1)
            for column, value in enumerate((image, kind, box)):
                rows.store(value, emitter.add(place, column), 1)
        lists.carry([emitter.add(lists.values[0], count)])
    total = lists.results[0]
    flat_operand(emitter, COUNT).store(total, emitter.i64(0), 1)
    rows.clear(emitter.mul(total, COLUMNS), emitter.extent(RESULT, 0))
