"""Joins conversions: where the inner of two loses nothing, the outer one reads its operand."""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Operator, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.ops import Cast
from glowstone.types import NARROW_FLOATS, ElementType

SIGNIFICANT_BITS = {ElementType.F64: 53, ElementType.F32: 24, ElementType.F16: 11, ElementType.BF16: 8}
HALF_SIZE = 2
"""Bytes of float16, in which powers of two (f8e8m0) do not fit."""


def merge_casts(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (merge_two_casts,))


@rewrite(Cast)
def merge_two_casts(builder: Builder, node: Node) -> Value | None:
    (between,) = node.operands
    x = operand(between)
    if between is None or x is None or not isinstance(between.operator, Cast):
        return None
    start, middle, end = x.element, between.element, node.result.element
    if not is_lossless(start, middle):
        return None
    if start is end and not _limits_infinity(node.operator, end):
        return x
    # integers wrap where floats saturate, so a float between two integers is not left out
    if start.wide.is_integer and middle.is_float and not end.wide.is_float:
        return None
    return None if start is end else builder.emit(node.operator, x)


def _limits_infinity(operator: Operator, element: ElementType) -> bool:
    """Whether a conversion makes the largest number of an infinity that the element type has."""
    assert isinstance(operator, Cast)
    return operator.saturates and element in NARROW_FLOATS and NARROW_FLOATS[element].infinity is not None


def is_lossless(start: ElementType, end: ElementType) -> bool:
    """Whether the conversion keeps every value."""
    if start is end:
        return True
    if end is ElementType.BOOL or end.is_narrow:
        return False
    if start is ElementType.BOOL:
        return True
    if start in NARROW_FLOATS:
        return end.is_float and (end.size > HALF_SIZE or start is not ElementType.F8E8M0)
    if start.is_float:
        wider = end.is_float and end.size > start.size
        return wider and SIGNIFICANT_BITS[end] >= SIGNIFICANT_BITS[start]
    bits = start.bits - int(start.is_signed)
    if end.is_float:
        return bits <= SIGNIFICANT_BITS[end]
    return 8 * end.size - int(end.is_signed) >= bits and (end.is_signed or not start.is_signed)
