"""Positions in scratch, and their stable sort by merging."""

from __future__ import annotations

from abc import ABC, abstractmethod

from glowstone.backends.cpu.emitter import FALSE, Emitter
from glowstone.backends.cpu.ir_types import I64, Value

POSITION_BYTES = 8
WORD_BITS = 64


class Positions(ABC):
    """Slots of scratch that hold positions of elements, and the order the elements should stand in."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter

    @abstractmethod
    def precedes(self, first: Value, second: Value) -> Value:
        """Whether the element at one position must stand before that at another, an i1."""

    def read(self, slot: Value) -> Value:
        """The position in a slot."""
        return self.emitter.load(self._address(slot), I64, POSITION_BYTES)

    def write(self, slot: Value, position: Value) -> None:
        self.emitter.store(position, self._address(slot), POSITION_BYTES)

    def _address(self, slot: Value) -> Value:
        return self.emitter.offset(self.emitter.scratch, slot, I64)

    def sort(self, count: Value, room: Value) -> None:
        """Sort the first `count` slots, at least one, by way of those from `room` on: runs of 1, 2, 4 ... are merged.

        Of elements neither of which precedes the other the one in the earlier slot stays first.
        """
        emitter = self.emitter
        leading_zeros = emitter.intrinsic("llvm.ctlz", I64, [emitter.sub(count, 1), FALSE])
        levels = emitter.sub(WORD_BITS, leading_zeros)
        with emitter.for_range(0, levels) as level:
            source = emitter.mul(emitter.rem(level.index, 2), room)
            target = emitter.sub(room, source)
            width = emitter.builder.shl(I64(1), level.index)
            pair = emitter.mul(width, 2)
            pairs = emitter.div(emitter.sub(emitter.add(count, pair), 1), pair)
            with emitter.for_range(0, pairs) as merges:
                low = emitter.mul(merges.index, pair)
                middle = emitter.minimum(emitter.add(low, width), count)
                high = emitter.minimum(emitter.add(low, pair), count)
                self._merge(source, target, (low, middle, high))
        with emitter.for_range(0, emitter.mul(count, emitter.rem(levels, 2))) as back:
            self.write(back.index, self.read(emitter.add(room, back.index)))

    def _merge(self, source: Value, target: Value, bounds: tuple[Value, Value, Value]) -> None:
        """Slots low to middle and middle to high of the source, each sorted, into low to high of the target."""
        emitter = self.emitter
        low, middle, high = bounds
        with emitter.for_range(low, high, carried=[low, middle]) as loop:
            left, right = loop.values
            left_position = self.read(emitter.add(source, emitter.minimum(left, emitter.sub(middle, 1))))
            right_position = self.read(emitter.add(source, emitter.minimum(right, emitter.sub(high, 1))))
            left_ends = emitter.compare(left, ">=", middle)
            goes_before = self.precedes(right_position, left_position)
            takes_right = emitter.both(emitter.compare(right, "<", high), emitter.builder.or_(left_ends, goes_before))
            self.write(
                emitter.add(target, loop.index),
                emitter.select(takes_right, right_position, left_position),
            )
            step = emitter.builder.zext(takes_right, I64)
            loop.carry([emitter.add(left, emitter.sub(1, step)), emitter.add(right, step)])
