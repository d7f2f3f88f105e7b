"""Recovers LayerNormalization from the primitives that exporters spell it out in.

Matches (x - mean) / sqrt(mean((x - mean)^2) + epsilon) over the last axis, the square as Pow or Mul, with the scale and
offset that follow where they are constants of that axis.
"""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Add, Div, LayerNormalization, Mul, Pow, ReduceMean, Sqrt, Sub
from glowstone.ops.constant import constant, constant_array


def recover_layer_normalization(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (recover_centre, merge_scale, merge_offset))


@rewrite(Div)
def recover_centre(builder: Builder, node: Node) -> Value | None:
    centred, deviation = node.operands
    if centred is None or deviation is None or not isinstance(deviation.operator, Sqrt):
        return None
    x = _centred(centred)
    epsilon = _epsilon_of_variance(_operand(deviation, 0), centred)
    if x is None or epsilon is None or x.type != node.result.type:  # the epsilon may add axes
        return None
    # another extent of this axis is refused by `infer`, which then makes a second template
    ones = constant(builder, np.ones(x.shape[-1], x.element.dtype))
    return builder.emit(LayerNormalization(-1, epsilon), x, ones)


@rewrite(Mul)
def merge_scale(builder: Builder, node: Node) -> Value | None:
    for value, other in (node.operands, node.operands[::-1]):
        normalization = _without_offset(builder, value)
        scale = constant_array(other)
        if normalization is None or scale is None:
            continue
        x, old = normalization.operands
        ones = constant_array(old)
        if ones is not None and scale.shape == ones.shape and np.all(ones == 1):
            return builder.emit(normalization.operator, x, other)
    return None


@rewrite(Add)
def merge_offset(builder: Builder, node: Node) -> Value | None:
    for value, other in (node.operands, node.operands[::-1]):
        normalization = _without_offset(builder, value)
        offset = constant_array(other)
        if normalization is None or offset is None:
            continue
        if offset.shape == normalization.result.shape[-1:]:
            return builder.emit(normalization.operator, *normalization.operands, other)
    return None


def _without_offset(builder: Builder, value: Value | None) -> Node | None:
    """The node of a layer normalization over the last axis that has no offset and whose result nothing else reads."""
    if value is None or value.node is None or not isinstance(value.operator, LayerNormalization):
        return None
    over_last = value.operator.axis in (-1, value.rank - 1)
    is_open = over_last and len(value.node.operands) == 2 and builder.graph.has_single_use(value)
    return value.node if is_open else None


def _operand(value: Value | None, index: int) -> Value | None:
    return value.node.operands[index] if value is not None and value.node is not None else None


def _is_mean_over_last(value: Value | None, of: Value) -> bool:
    if value is None or not isinstance(value.operator, ReduceMean) or _operand(value, 0) is not of:
        return False
    return value.operator.keep and value.operator.normal_axes(of.rank) == (of.rank - 1,)


def _centred(value: Value) -> Value | None:
    """x where the value is x - mean(x)."""
    if not isinstance(value.operator, Sub):
        return None
    x = _operand(value, 0)
    return x if x is not None and _is_mean_over_last(_operand(value, 1), x) else None


def _epsilon_of_variance(value: Value | None, centred: Value) -> float | None:
    """Epsilon where the value is mean(centred^2) + epsilon."""
    if value is None or value.node is None or not isinstance(value.operator, Add):
        return None
    for variance, other in (value.node.operands, value.node.operands[::-1]):
        epsilon = constant_array(other)
        if variance is None or epsilon is None or epsilon.size != 1:
            continue
        square = _operand(variance, 0)
        if square is not None and _is_mean_over_last(variance, square) and _is_square(square, centred):
            return float(epsilon.reshape(-1)[0])
    return None


def _is_square(value: Value, of: Value) -> bool:
    if value.node is None or value.node.operands[0] is not of:
        return False
    if isinstance(value.operator, Mul):
        return value.node.operands[1] is of
    exponent = constant_array(value.node.operands[1]) if isinstance(value.operator, Pow) else None
    return exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]) == 2.0
