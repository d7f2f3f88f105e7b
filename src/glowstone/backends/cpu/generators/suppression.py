"""Body of `SuppressOverlaps`: candidates sorted by score, each compared with those that were kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from glowstone.backends.cpu.emitter import FALSE, Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.merge_sort import Positions
from glowstone.backends.cpu.generators.order import Order
from glowstone.backends.cpu.generators.outer_loops import flat_operand
from glowstone.backends.cpu.ir_types import F32, I64, Value
from glowstone.lir.operations.counted import SuppressOverlaps

SELECTED, COUNTS, BOXES, SCORES, OVERLAP, LIMIT, THRESHOLD = range(7)
CORNERS = 4


class _Candidates(Positions):
    """The boxes of a class, those of high scores first, a score that is NaN last."""

    def __init__(self, emitter: Emitter, scores: InnerOperand) -> None:
        super().__init__(emitter)
        self._order = Order(emitter, scores.element)
        self.scores = scores

    def precedes(self, first: Value, second: Value) -> Value:
        return self._order.is_below(self.scores.load(second, 1), self.scores.load(first, 1))


@dataclass(frozen=True)
class _Box:
    """Lowest and highest coordinates, along two axes, and the area."""

    low: tuple[Value, Value]
    high: tuple[Value, Value]
    area: Value


def emit_suppression(emitter: Emitter, operation: SuppressOverlaps) -> None:
    """Units are classes of images."""
    count = emitter.extent(BOXES, 1)
    with emitter.for_units() as units:
        image = emitter.div(units.index, emitter.extent(SCORES, 1))
        scores = flat_operand(emitter, SCORES).moved(emitter.mul(units.index, count))
        boxes = flat_operand(emitter, BOXES).moved(emitter.mul(image, emitter.mul(count, CORNERS)))
        room = emitter.extent(SELECTED, 1)
        selected = flat_operand(emitter, SELECTED).moved(emitter.mul(units.index, room))
        candidates = _Candidates(emitter, scores)
        found = _emit_candidates(emitter, candidates, count, operation.has_threshold)
        with emitter.if_true(emitter.compare(found, ">", 0)):
            candidates.sort(found, count)
        kept = _emit_selection(emitter, candidates, found, boxes, selected, operation.by_center)
        flat_operand(emitter, COUNTS).store(kept, units.index, 1)
        selected.clear(kept, room)


def _emit_candidates(emitter: Emitter, candidates: _Candidates, count: Value, has_threshold: bool) -> Value:
    """Note the boxes with a score above the threshold; returns how many there are."""
    with emitter.for_range(0, count, carried=[emitter.i64(0)]) as loop:
        candidates.write(loop.values[0], loop.index)
        step = emitter.i64(1)
        if has_threshold:
            threshold = flat_operand(emitter, THRESHOLD).load_single()
            passes = emitter.builder.fcmp_ordered(">", candidates.scores.load(loop.index, 1), threshold)
            step = emitter.builder.zext(passes, I64)
        loop.carry([emitter.add(loop.values[0], step)])
    return loop.results[0]


def _emit_selection(
    emitter: Emitter,
    candidates: _Candidates,
    found: Value,
    boxes: InnerOperand,
    selected: InnerOperand,
    by_center: bool,
) -> Value:
    """Keep every candidate that no kept one overlaps, while there is room; returns how many are kept."""
    limit = flat_operand(emitter, LIMIT).load_single()
    most = emitter.minimum(limit, emitter.extent(SELECTED, 1))
    with emitter.for_range(0, found, carried=[emitter.i64(0)]) as loop:
        kept = loop.values[0]
        has_room = emitter.compare(kept, "<", most)
        position = candidates.read(loop.index)
        box = _emit_box(emitter, boxes, position, by_center)
        rivals = emitter.select(has_room, kept, emitter.i64(0))
        with emitter.for_range(0, rivals, carried=[FALSE]) as others:
            other = _emit_box(emitter, boxes, selected.load(others.index, 1), by_center)
            others.carry([emitter.builder.or_(others.values[0], _emit_overlap(emitter, box, other))])
        is_kept = emitter.both(has_room, emitter.builder.not_(others.results[0]))
        with emitter.if_true(is_kept):
            selected.store(position, kept, 1)
        loop.carry([emitter.add(kept, emitter.builder.zext(is_kept, I64))])
    return loop.results[0]


def _emit_box(emitter: Emitter, boxes: InnerOperand, position: Value, by_center: bool) -> _Box:
    builder, start = emitter.builder, emitter.mul(position, CORNERS)
    numbers = [boxes.load(emitter.add(start, number), 1) for number in range(CORNERS)]
    low, high = [], []
    for first, second in zip(numbers[:2], numbers[2:], strict=True):
        if by_center:
            half = builder.fmul(second, ir.Constant(F32, 0.5))
            low.append(builder.fsub(first, half))
            high.append(builder.fadd(first, half))
        else:
            low.append(_smaller(emitter, first, second))
            high.append(_larger(emitter, first, second))
    return _Box((low[0], low[1]), (high[0], high[1]), _area(emitter, low, high))


def _emit_overlap(emitter: Emitter, one: _Box, other: _Box) -> Value:
    """Whether the intersection is more than so much of the union; both have an area, and something in common."""
    builder, zero = emitter.builder, ir.Constant(F32, 0.0)
    low = [_larger(emitter, *pair) for pair in zip(one.low, other.low, strict=True)]
    high = [_smaller(emitter, *pair) for pair in zip(one.high, other.high, strict=True)]
    common = _area(emitter, low, high)
    union = builder.fsub(builder.fadd(one.area, other.area), common)
    limit = flat_operand(emitter, OVERLAP).load_single()
    overlaps = builder.fcmp_ordered(">", builder.fdiv(common, union), limit)
    for ends, starts in zip(high, low, strict=True):
        overlaps = emitter.both(overlaps, builder.fcmp_ordered(">", ends, starts))
    for area in (one.area, other.area):
        overlaps = emitter.both(overlaps, builder.fcmp_ordered(">", area, zero))
    return overlaps


def _area(emitter: Emitter, low: Sequence[Value], high: Sequence[Value]) -> Value:
    sides = [emitter.builder.fsub(end, start) for start, end in zip(low, high, strict=True)]
    return emitter.builder.fmul(sides[0], sides[1])


def _smaller(emitter: Emitter, x: Value, y: Value) -> Value:
    return emitter.select(emitter.builder.fcmp_ordered("<", x, y), x, y)


def _larger(emitter: Emitter, x: Value, y: Value) -> Value:
    return emitter.select(emitter.builder.fcmp_ordered(">", x, y), x, y)
