"""Joins conversions: where the inner of two loses nothing, the outer one reads its operand."""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.ops import Cast
from glowstone.types import ElementType

SIGNIFICANT_BITS = {ElementType.F64: 53, ElementType.F32: 24, ElementType.F16: 11, ElementType.BF16: 8}


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
    if start is end:
        return x
    # integers wrap where floats saturate, so a float between two integers is not left out
    if start.is_integer and middle.is_float and not end.is_float:
        return None
    return builder.emit(Cast(end), x)


def is_lossless(start: ElementType, end: ElementType) -> bool:
    """Whether the conversion keeps every value."""
    if start is end or start is ElementType.BOOL:
        return True
    if end is ElementType.BOOL:
        return False
    if start.is_float:
        wider = end.is_float and end.size > start.size
        return wider and SIGNIFICANT_BITS[end] >= SIGNIFICANT_BITS[start]
    bits = 8 * start.size - int(start.is_signed)
    if end.is_float:
        return bits <= SIGNIFICANT_BITS[end]
    return 8 * end.size - int(end.is_signed) >= bits and (end.is_signed or not start.is_signed)
