"""Removes quantization that gives back what was dequantized, and limits that saturation sets anyway."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph.operator import Array
from glowstone.graph_passes.matching import number, operand
from glowstone.ops import Clip, DequantizeLinear, QuantizeLinear, Relu
from glowstone.ops.constant import constant_array
from glowstone.types import NARROW_FLOATS

HALF_SIZE = 2
"""Bytes of a float of too few digits."""
SMALLEST_SCALE = 1e-30


def simplify_quantization(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (drop_round_trip, drop_limit))


@rewrite(QuantizeLinear)
def drop_round_trip(builder: Builder, node: Node) -> Value | None:
    """With the same scale and zero point, on the same axis, the integer comes back."""
    between = node.operands[0]
    x = operand(between)
    if between is None or between.node is None or x is None or x.type != node.result.type:
        return None
    inner, outer = between.operator, node.operator
    assert isinstance(outer, QuantizeLinear)
    if not isinstance(inner, DequantizeLinear) or (inner.axis, inner.block) != (outer.axis, outer.block):
        return None
    scale = constant_array(node.operands[1])
    if scale is None or outer.precision is not None or not _is_undone(scale, x, between):
        return None
    return x if between.node.operands[1:] == node.operands[1:] else None


def _is_undone(scale: Array, x: Value, product: Value) -> bool:
    """Whether division by the scale undoes multiplication: of bytes, with more digits, well within the range.

    Not of a float with infinities, which become its largest number.
    """
    if x.element in NARROW_FLOATS and NARROW_FLOATS[x.element].infinity is not None:
        return False
    has_digits = scale.dtype.itemsize > HALF_SIZE and product.element.size > HALF_SIZE and x.element.size == 1
    return has_digits and bool(np.all((np.abs(scale) > SMALLEST_SCALE) & (np.abs(scale) < 1 / SMALLEST_SCALE)))


@rewrite(QuantizeLinear)
def drop_limit(builder: Builder, node: Node) -> Value | None:
    """A Relu or Clip that is no narrower than the range of the integers, for one scale."""
    limited = node.operands[0]
    x = operand(limited)
    scale, zero = number(node.operands[1]), _zero_point(node)
    if limited is None or limited.node is None or x is None or scale is None or zero is None or scale <= 0:
        return None
    if node.result.element.wide.is_float:
        return None
    lowest, highest = ((limit - zero) * scale for limit in node.result.element.limits)
    if isinstance(limited.operator, Relu):
        low: float | None = 0.0
        high: float | None = np.inf
    elif isinstance(limited.operator, Clip):
        ends = (*limited.node.operands[1:], None, None)[:2]
        low = -np.inf if ends[0] is None else number(ends[0])
        high = np.inf if ends[1] is None else number(ends[1])
    else:
        return None
    if low is None or high is None or low > lowest or high < highest:
        return None
    return builder.emit(node.operator, x, *node.operands[1:])


def _zero_point(node: Node) -> float | None:
    zero_point = node.operands[2] if len(node.operands) > 2 else None
    return 0.0 if zero_point is None else number(zero_point)
