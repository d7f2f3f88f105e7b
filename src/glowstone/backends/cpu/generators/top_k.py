"""Bodies of selections: positions are sorted in scratch, elements stay where they are.

Both algorithms are stable: of equal elements the one found first stays first.
"""

from __future__ import annotations

from glowstone.backends.cpu.emitter import FALSE, Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.merge_sort import Positions
from glowstone.backends.cpu.generators.order import Order
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.lir.operations import TopK

VALUES, POSITIONS, X = range(3)
ROWS_PER_UNIT = 0
ALONG = 1


class _Row(Positions):
    """One row of x, and positions in scratch."""

    def __init__(self, emitter: Emitter, x: InnerOperand, largest: bool) -> None:
        super().__init__(emitter)
        self._x = x
        self._order = Order(emitter, x.element)
        self._largest = largest

    def at(self, position: Value) -> Value:
        return self._x.load(position, 1)

    def precedes(self, first: Value, second: Value) -> Value:
        return self.beats(self.at(first), self.at(second))

    def beats(self, x: Value, y: Value) -> Value:
        """Whether element x must stand before element y."""
        return self._order.is_above(x, y) if self._largest else self._order.is_above(y, x)


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
            (_emit_insertion if by_insertion else _emit_selection)(emitter, row)
            with emitter.for_range(0, emitter.extent(VALUES, ALONG)) as slots:
                position = row.read(slots.index)
                values.store(row.at(position), slots.index, 1)
                positions.store(position, slots.index, 1)


def _emit_insertion(emitter: Emitter, row: _Row) -> None:
    """The best K so far in order; a better element rises to its place."""
    wanted = emitter.extent(VALUES, ALONG)
    zero, one = emitter.i64(0), emitter.i64(1)
    row.write(zero, zero)
    with emitter.for_range(1, emitter.extent(X, ALONG), carried=[one]) as loop:
        kept = loop.values[0]
        worst = row.at(row.read(emitter.sub(kept, 1)))
        has_room = emitter.compare(kept, "<", wanted)
        with emitter.if_true(emitter.builder.or_(has_room, row.beats(row.at(loop.index), worst)), likely=False):
            last = emitter.minimum(kept, emitter.sub(wanted, 1))
            row.write(last, loop.index)
            with emitter.for_range(0, last) as sinking:
                _emit_exchange(emitter, row, emitter.sub(last, sinking.index))
        loop.carry([emitter.minimum(emitter.add(kept, 1), wanted)])


def _emit_exchange(emitter: Emitter, row: _Row, slot: Value) -> None:
    """Put a slot and the one before it in order."""
    before = emitter.sub(slot, 1)
    upper, lower = row.read(before), row.read(slot)
    swaps = row.precedes(lower, upper)
    row.write(before, emitter.select(swaps, lower, upper))
    row.write(slot, emitter.select(swaps, upper, lower))


def _emit_selection(emitter: Emitter, row: _Row) -> None:
    """Room for twice K positions, to which elements that beat the K-th best so far are added.

    When the room is full it is sorted and cut to K.
    """
    wanted = emitter.extent(VALUES, ALONG)
    room = emitter.mul(wanted, 2)
    zero = emitter.i64(0)
    with emitter.for_range(0, emitter.extent(X, ALONG), carried=[zero, FALSE]) as loop:
        count, is_cut = loop.values
        worst = row.at(emitter.select(is_cut, row.read(emitter.sub(wanted, 1)), zero))
        is_added = emitter.builder.or_(emitter.builder.not_(is_cut), row.beats(row.at(loop.index), worst))
        row.write(count, loop.index)
        following = emitter.add(count, emitter.builder.zext(is_added, I64))
        is_full = emitter.compare(following, "==", room)
        with emitter.if_true(is_full, likely=False):
            row.sort(following, room)
        loop.carry([emitter.select(is_full, wanted, following), emitter.builder.or_(is_cut, is_full)])
    row.sort(loop.results[0], room)
