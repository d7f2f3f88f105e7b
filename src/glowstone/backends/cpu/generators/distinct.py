"""Body of `DistinctSlices`: positions are sorted in scratch, equal neighbours form a group, groups are numbered."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import FALSE, Emitter
from glowstone.backends.cpu.generators.compaction import emit_slice
from glowstone.backends.cpu.generators.merge_sort import Positions
from glowstone.backends.cpu.generators.order import Order
from glowstone.backends.cpu.generators.outer_loops import flat_operand
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.lir.operations.counted import DistinctSlices

Y, FIRST, INVERSE, OCCURRENCES, COUNT, X = range(6)
GROUPS, NUMBERS = 2, 3
"""Which R slots of scratch, behind those that sorting takes: the group of every slice, the number of every group."""
UNNUMBERED = -1


class _Slices(Positions):
    """The slices `x[:, r]` of x [outer, R, inner], in ascending order."""

    def __init__(self, emitter: Emitter, is_single: bool) -> None:
        super().__init__(emitter)
        self.outer, self.length, self.inner = (emitter.extent(X, axis) for axis in range(3))
        self.x = flat_operand(emitter, X)
        self._order = Order(emitter, self.x.element)
        self._is_single = is_single

    def precedes(self, first: Value, second: Value) -> Value:
        return self._compared(first, second)[0]

    def differs(self, first: Value, second: Value) -> Value:
        """Whether the slices at two positions are not equal."""
        is_below, is_above = self._compared(first, second)
        return self.emitter.builder.or_(is_below, is_above)

    def _compared(self, first: Value, second: Value) -> tuple[Value, Value]:
        """Whether one slice is below another, whether it is above, by the first element that differs."""
        emitter, builder = self.emitter, self.emitter.builder
        if self._is_single:
            return self._compared_elements(self.x.load(first, 1), self.x.load(second, 1))
        with emitter.for_range(0, emitter.mul(self.outer, self.inner), carried=[FALSE, FALSE]) as loop:
            row, column = emitter.divmod(loop.index, self.inner)
            elements = [self.x.load(self._place(row, position, column), 1) for position in (first, second)]
            undecided = builder.not_(builder.or_(*loop.values))
            compared = self._compared_elements(*elements)
            loop.carry(
                [
                    builder.or_(value, emitter.both(undecided, found))
                    for value, found in zip(loop.values, compared, strict=True)
                ]
            )
        return loop.results[0], loop.results[1]

    def _place(self, row: Value, position: Value, column: Value) -> Value:
        emitter = self.emitter
        return emitter.add(emitter.mul(emitter.add(emitter.mul(row, self.length), position), self.inner), column)

    def _compared_elements(self, x: Value, y: Value) -> tuple[Value, Value]:
        return self._order.is_above(y, x), self._order.is_above(x, y)

    def slot(self, which: int, index: Value) -> Value:
        """One of the slots behind those that sorting takes."""
        return self.emitter.add(self.emitter.mul(self.length, which), index)


def emit_distinct_slices(emitter: Emitter, operation: DistinctSlices, is_single: bool) -> None:
    """One unit."""
    with emitter.for_units():
        slices = _Slices(emitter, is_single)
        with emitter.for_range(0, slices.length) as loop:
            slices.write(loop.index, loop.index)
        with emitter.if_true(emitter.compare(slices.length, ">", 0)):
            slices.sort(slices.length, slices.length)
        total = _emit_groups(emitter, slices)
        flat_operand(emitter, COUNT).store(total, emitter.i64(0), 1)
        _emit_numbers(emitter, slices, operation.ordered)
        _emit_results(emitter, slices, total)


def _emit_groups(emitter: Emitter, slices: _Slices) -> Value:
    """Give every slice its group, in ascending order; returns how many there are."""
    with emitter.for_range(0, slices.length, carried=[emitter.i64(0)]) as loop:
        position = slices.read(loop.index)
        is_first = emitter.compare(loop.index, "==", 0)
        before = slices.read(emitter.select(is_first, loop.index, emitter.sub(loop.index, 1)))
        is_new = emitter.builder.or_(is_first, slices.differs(before, position))
        count = emitter.add(loop.values[0], emitter.builder.zext(is_new, I64))
        group = emitter.sub(count, 1)
        slices.write(slices.slot(GROUPS, position), group)
        slices.write(slices.slot(NUMBERS, group), emitter.i64(UNNUMBERED))
        loop.carry([count])
    return loop.results[0]


def _emit_numbers(emitter: Emitter, slices: _Slices, ordered: bool) -> None:
    """Number the groups, by their order or by first occurrence, and write where and how often each occurs."""
    first, inverse, occurrences = (flat_operand(emitter, operand) for operand in (FIRST, INVERSE, OCCURRENCES))
    with emitter.for_range(0, slices.length, carried=[emitter.i64(0)]) as loop:
        group = slices.read(slices.slot(GROUPS, loop.index))
        slot = slices.slot(NUMBERS, group)
        given = slices.read(slot)
        is_new = emitter.compare(given, "<", 0)
        number = emitter.select(is_new, group if ordered else loop.values[0], given)
        slices.write(slot, number)
        inverse.store(number, loop.index, 1)
        with emitter.if_true(is_new):
            first.store(loop.index, number, 1)
            occurrences.store(emitter.i64(0), number, 1)
        occurrences.store(emitter.add(occurrences.load(number, 1), 1), number, 1)
        loop.carry([emitter.add(loop.values[0], emitter.builder.zext(is_new, I64))])


def _emit_results(emitter: Emitter, slices: _Slices, total: Value) -> None:
    """The distinct slices, and zeros behind everything."""
    first, occurrences, y = (flat_operand(emitter, operand) for operand in (FIRST, OCCURRENCES, Y))
    with emitter.for_range(0, total) as loop:
        source = (slices.x, slices.length, first.load(loop.index, 1))
        emit_slice(emitter, (y, total, loop.index), source, slices.outer, slices.inner)
    for positions in (first, occurrences):
        positions.clear(total, slices.length)
    y.clear(emitter.mul(total, emitter.mul(slices.outer, slices.inner)), emitter.extent(Y, 0))
