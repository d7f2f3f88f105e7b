"""Recovers Softmax from exp(x) / sum(exp(x)) along one axis, with or without the largest element taken off first."""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import both_orders, is_made_by, operand
from glowstone.ops import Div, Exp, Mul, Reciprocal, ReduceMax, ReduceSum, Reduction, Softmax, Sub


def recover_softmax(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (recover_quotient, recover_product))


@rewrite(Div)
def recover_quotient(builder: Builder, node: Node) -> Value | None:
    return _softmax(builder, node.operands[0], node.operands[1])


@rewrite(Mul)
def recover_product(builder: Builder, node: Node) -> Value | None:
    """With the reciprocal of the sum."""
    for powers, inverse in both_orders(node):
        if is_made_by(inverse, Reciprocal):
            made = _softmax(builder, powers, operand(inverse))
            if made is not None:
                return made
    return None


def _softmax(builder: Builder, powers: Value | None, total: Value | None) -> Value | None:
    if powers is None or not is_made_by(powers, Exp) or not is_made_by(total, ReduceSum):
        return None
    axis = _reduced_axis(total, powers)
    x = operand(powers)
    if axis is None or x is None:
        return None
    shifted, largest = operand(x, 0), operand(x, 1)
    if is_made_by(x, Sub) and is_made_by(largest, ReduceMax) and _reduced_axis(largest, shifted) == axis:
        x = shifted
    return builder.emit(Softmax(axis), x)


def _reduced_axis(value: Value | None, of: Value | None) -> int | None:
    """The one axis of `of` that the value reduces and keeps."""
    if value is None or of is None or not isinstance(value.operator, Reduction) or operand(value) is not of:
        return None
    axes = value.operator.normal_axes(of.rank)
    return axes[0] if value.operator.keep and len(axes) == 1 else None
