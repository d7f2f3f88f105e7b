"""Joins limits: chains of Clip, Relu, and Maximum and Minimum with a number become one Clip or Relu, and what lies
between its limits anyway goes through untouched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import adds_no_axes, both_orders, is_made_by, number, operand
from glowstone.ops import (
    Abs,
    Clip,
    Exp,
    HardSigmoid,
    Maximum,
    Minimum,
    Relu,
    ReshapeLike,
    Sigmoid,
    Slice,
    Softmax,
    Sqrt,
    Tanh,
    Transpose,
)
from glowstone.ops.constant import scalar
from glowstone.types import ElementType

INFINITE = math.inf
DEEPEST = 8
"""How many operators `range_of` looks through."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`. What is not a number stays so."""

    low: float = -INFINITE
    high: float = INFINITE

    def limited(self, outer: Range) -> Range:
        """What limiting to this range, then to `outer`, comes to."""
        return Range(*(min(max(end, outer.low), outer.high) for end in (self.low, self.high)))

    def contains(self, other: Range) -> bool:
        return self.low <= other.low and other.high <= self.high


_RANGES: dict[type, Range] = {
    Sigmoid: Range(0.0, 1.0),
    HardSigmoid: Range(0.0, 1.0),
    Softmax: Range(0.0, 1.0),
    Tanh: Range(-1.0, 1.0),
    Exp: Range(0.0),
    Sqrt: Range(0.0),
}


def merge_limits(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (merge_two_limits, drop_limit))


@rewrite(Relu, Clip, Maximum, Minimum)
def merge_two_limits(builder: Builder, node: Node) -> Value | None:
    """The outer of two limits takes in the inner one, if nothing else reads that."""
    outer = _limit(node)
    if outer is None or outer.x.node is None or not builder.graph.has_single_use(outer.x):
        return None
    inner = _limit(outer.x.node)
    if inner is None or not _is_exact(node.result.element):
        return None
    return _limited(builder, inner.x, inner.range.limited(outer.range))


@rewrite(Relu, Clip, Maximum, Minimum)
def drop_limit(builder: Builder, node: Node) -> Value | None:
    limit = _limit(node)
    return limit.x if limit is not None and limit.range.contains(range_of(limit.x)) else None


@dataclass(frozen=True)
class _Limit:
    """x limited to a range."""

    x: Value
    range: Range


def _is_exact(element: ElementType) -> bool:
    """Whether limits of this type are exact as floats of Python."""
    return element.is_float or element.size < ElementType.I64.size


def _limit(node: Node) -> _Limit | None:
    """The node as a limit of its operand by numbers."""
    x = node.operands[0]
    assert x is not None
    if isinstance(node.operator, Relu):
        return _Limit(x, Range(0.0))
    if isinstance(node.operator, Clip):
        low, high = (*node.operands[1:], None, None)[:2]
        ends = (-INFINITE if low is None else number(low), INFINITE if high is None else number(high))
        return _checked(x, *ends)
    if not isinstance(node.operator, Maximum | Minimum):
        return None
    for value, other in both_orders(node):
        found = number(other)
        if found is not None and adds_no_axes(other, value):
            is_low = isinstance(node.operator, Maximum)
            return _checked(value, found if is_low else -INFINITE, INFINITE if is_low else found)
    return None


def _checked(x: Value, low: float | None, high: float | None) -> _Limit | None:
    """The limit, unless an end is unknown or no number; with ends crossed, all comes to the high end."""
    if low is None or high is None or math.isnan(low) or math.isnan(high) or not _is_exact(x.element):
        return None
    return _Limit(x, Range(min(low, high), high))


def _limited(builder: Builder, x: Value, range_: Range) -> Value:
    if range_ == Range(0.0) and x.element in (Relu.operands[0].elements or ()):
        return builder.emit(Relu(), x)
    ends = [
        None if math.isinf(end) and end == default else scalar(builder, _typed(end, x.element), x.element)
        for end, default in ((range_.low, -INFINITE), (range_.high, INFINITE))
    ]
    return builder.emit(Clip(), x, *ends)


def _typed(end: float, element: ElementType) -> float | int:
    return end if element.is_float else int(end)


def range_of(value: Value) -> Range:
    """Where every element of the value lies, as its operators say; moves of data keep it."""
    current: Value | None = value
    for _ in range(DEEPEST):
        assert current is not None
        if current.node is None:
            break
        limit = _limit(current.node) if isinstance(current.operator, Relu | Clip | Maximum | Minimum) else None
        if limit is not None:
            return limit.range
        if isinstance(current.operator, Abs):
            return Range(0.0) if current.element.is_float else Range()
        known = _RANGES.get(type(current.operator))
        if known is not None:
            return known
        if not is_made_by(current, ReshapeLike, Transpose, Slice):
            break
        current = operand(current)
    if current is not None and current.element.is_integer and not current.element.is_signed:
        return Range(0.0, float(current.element.limits[1]))
    return Range()
