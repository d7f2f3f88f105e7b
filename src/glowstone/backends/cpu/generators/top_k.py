"""Bodies of selections: positions are sorted in scratch, elements stay where they are.

Both algorithms are stable: of equal elements the one found first stays first.
"""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.order import Order
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.lir.operations import TopK

VALUES, POSITIONS, X = range(3)
ROWS_PER_UNIT, LEVELS = range(2)
POSITION_BYTES = 8
ALONG = 1


class _Row:
    """One row of x, and positions in scratch."""

    def __init__(self, emitter: Emitter, x: InnerOperand, largest: bool) -> None:
        self._emitter = emitter
        self._x = x
        self._order = Order(emitter, x.element)
        self._largest = largest

    def at(self, position: Value) -> Value:
        return self._x.load(position, 1)

    def precedes(self, x: Value, y: Value) -> Value:
        """Whether element x must stand before element y."""
        return self._order.is_above(x, y) if self._largest else self._order.is_above(y, x)

    def read(self, slot: Value) -> Value:
        """The position in a slot of scratch."""
        return self._emitter.load(self._address(slot), I64, POSITION_BYTES)

    def write(self, slot: Value, position: Value) -> None:
        self._emitter.store(position, self._address(slot), POSITION_BYTES)

    def _address(self, slot: Value) -> Value:
        return self._emitter.offset(self._emitter.scratch, slot, I64)


def emit_top_k(emitter: Emitter, operation: TopK, by_insertion: bool) -> None:
    """Rows (o, i) of x [outer, R, inner]."""
    with emitter.for_units() as units:
        inner = emitter.extent(X, 2)
        first = emitter.mul(units.index, emitter.derived(ROWS_PER_UNIT))
        count = emitter.mul(emitter.extent(X, 0), inner)
        last = emitter.minimum(emitter.add(first, emitter.derived(ROWS_PER_UNIT)), count)
        with emitter.for_range(first, last) as rows:
            outer, column = emitter.divmod(rows.index, inner)
            values, positions, x = (
                operand_at(emitter, operand, ALONG, InnerStride.ANY, (0, outer), (2, column))
                for operand in (VALUES, POSITIONS, X)
            )
            row = _Row(emitter, x, operation.largest)
            start = _emit_insertion(emitter, row) if by_insertion else _emit_merge_sort(emitter, row)
            with emitter.for_range(0, emitter.extent(VALUES, ALONG)) as slots:
                position = row.read(emitter.add(start, slots.index))
                values.store(row.at(position), slots.index, 1)
                positions.store(position, slots.index, 1)


def _emit_insertion(emitter: Emitter, row: _Row) -> Value:
    """The best K so far in order; a better element sinks to its place. Returns the slot of the first."""
    wanted = emitter.extent(VALUES, ALONG)
    zero, one = emitter.i64(0), emitter.i64(1)
    row.write(zero, zero)
    with emitter.for_range(1, emitter.extent(X, ALONG), carried=[one]) as loop:
        kept = loop.values[0]
        worst = row.at(row.read(emitter.sub(kept, 1)))
        has_room = emitter.compare(kept, "<", wanted)
        with emitter.if_true(emitter.builder.or_(has_room, row.precedes(row.at(loop.index), worst)), likely=False):
            last = emitter.minimum(kept, emitter.sub(wanted, 1))
            row.write(last, loop.index)
            with emitter.for_range(0, last) as sinking:
                _emit_exchange(emitter, row, emitter.sub(last, sinking.index))
        loop.carry([emitter.minimum(emitter.add(kept, 1), wanted)])
    return zero


def _emit_exchange(emitter: Emitter, row: _Row, slot: Value) -> None:
    """Put a slot and the one before it in order."""
    before = emitter.sub(slot, 1)
    upper, lower = row.read(before), row.read(slot)
    swaps = row.precedes(row.at(lower), row.at(upper))
    row.write(before, emitter.select(swaps, lower, upper))
    row.write(slot, emitter.select(swaps, upper, lower))


def _emit_merge_sort(emitter: Emitter, row: _Row) -> Value:
    """Runs of 1, 2, 4 ... positions merged from one half of scratch to the other; returns the slot of the first."""
    length, levels = emitter.extent(X, ALONG), emitter.derived(LEVELS)
    with emitter.for_range(0, length) as loop:
        row.write(loop.index, loop.index)
    with emitter.for_range(0, levels) as level:
        is_odd = emitter.rem(level.index, 2)
        source = emitter.mul(is_odd, length)
        target = emitter.sub(length, source)
        width = emitter.builder.shl(I64(1), level.index)
        pair = emitter.mul(width, 2)
        pairs = emitter.div(emitter.sub(emitter.add(length, pair), 1), pair)
        with emitter.for_range(0, pairs) as merges:
            low = emitter.mul(merges.index, pair)
            middle = emitter.minimum(emitter.add(low, width), length)
            high = emitter.minimum(emitter.add(low, pair), length)
            _emit_merge(emitter, row, source, target, (low, middle, high))
    return emitter.mul(emitter.rem(levels, 2), length)


def _emit_merge(emitter: Emitter, row: _Row, source: Value, target: Value, bounds: tuple[Value, Value, Value]) -> None:
    """Slots low to middle and middle to high of the source, each sorted, into low to high of the target."""
    low, middle, high = bounds
    with emitter.for_range(low, high, carried=[low, middle]) as loop:
        left, right = loop.values
        left_position = row.read(emitter.add(source, emitter.minimum(left, emitter.sub(middle, 1))))
        right_position = row.read(emitter.add(source, emitter.minimum(right, emitter.sub(high, 1))))
        left_ends = emitter.compare(left, ">=", middle)
        goes_before = row.precedes(row.at(right_position), row.at(left_position))
        takes_right = emitter.both(emitter.compare(right, "<", high), emitter.builder.or_(left_ends, goes_before))
        row.write(
            emitter.add(target, loop.index),
            emitter.select(takes_right, right_position, left_position),
        )
        step = emitter.builder.zext(takes_right, I64)
        loop.carry([emitter.add(left, emitter.sub(1, step)), emitter.add(right, step)])
