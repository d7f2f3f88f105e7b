"""Recovers LayerNormalization from the primitives that exporters spell it out in.

Matches (x - mean) / sqrt(mean((x - mean)^2) + epsilon) over the last axes, with the scale and offset that follow where
they are constants of those axes. The square may be a power or a product, the quotient a product with the inverse root,
and the whole may be written as x * factor + (offset - mean * factor).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import both_orders, inverse_root_of, is_made_by, is_square, operand, with_number
from glowstone.ops import Add, Div, LayerNormalization, Mul, ReduceMean, Sqrt, Sub
from glowstone.ops.constant import constant, constant_array


def recover_layer_normalization(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(
        graph, (recover_quotient, recover_product, recover_scaled_product, recover_sum, merge_scale, merge_offset)
    )


@dataclass(frozen=True)
class _Centred:
    """x less its mean over the axes from `axis` on."""

    x: Value
    axis: int


@rewrite(Div)
def recover_quotient(builder: Builder, node: Node) -> Value | None:
    """(x - mean) / deviation."""
    centred, deviation = node.operands
    if centred is None or not is_made_by(deviation, Sqrt):
        return None
    return _normalized(builder, node, centred, operand(deviation))


@rewrite(Mul)
def recover_product(builder: Builder, node: Node) -> Value | None:
    """(x - mean) * (1 / deviation)."""
    for centred, inverse in both_orders(node):
        variance = inverse_root_of(inverse)
        made = _normalized(builder, node, centred, variance) if variance is not None else None
        if made is not None:
            return made
    return None


@rewrite(Mul)
def recover_scaled_product(builder: Builder, node: Node) -> Value | None:
    """(x - mean) * (scale / deviation)."""
    for centred, factor in both_orders(node):
        if factor.node is None or not is_made_by(factor, Mul):
            continue
        for inverse, scale in both_orders(factor.node):
            known = _normalization(node, centred, inverse_root_of(inverse))
            if known is not None and _is_parameter(scale, known[0], known[0].rank + known[1].axis):
                return builder.emit(known[1], known[0], scale)
    return None


@rewrite(Add)
def recover_sum(builder: Builder, node: Node) -> Value | None:
    """x * factor + (offset - mean * factor), the factor being the scale / deviation."""
    for product, rest in both_orders(node):
        offset, scaled_mean = operand(rest, 0), operand(rest, 1)
        if not is_made_by(product, Mul) or not is_made_by(rest, Sub) or not is_made_by(scaled_mean, Mul):
            continue
        assert product.node is not None
        for x, factor in both_orders(product.node):
            made = _from_factor(builder, x, factor, scaled_mean, offset)
            if made is not None and made.type == node.result.type:
                return made
    return None


def _from_factor(
    builder: Builder, x: Value, factor: Value, scaled_mean: Value | None, offset: Value | None
) -> Value | None:
    mean = _other_factor(scaled_mean, factor)
    axis = _mean_axis(mean, x)
    if axis is None or not is_made_by(factor, Mul):
        return None
    assert factor.node is not None
    for inverse, scale in both_orders(factor.node):
        root = inverse_root_of(inverse)
        if root is None or not _is_parameter(scale, x, axis) or not _is_parameter(offset, x, axis):
            continue
        for variance, epsilon in with_number(root, Add):
            centred = _squared(operand(variance))
            known = _centred(centred) if centred is not None else None
            if known is not None and known == _Centred(x, axis) and _mean_axis(variance, x, operand(variance)) == axis:
                return builder.emit(LayerNormalization(axis - x.rank, epsilon), x, scale, offset)
    return None


def _other_factor(value: Value | None, factor: Value) -> Value | None:
    if value is None or value.node is None:
        return None
    return next((other for one, other in both_orders(value.node) if one is factor), None)


def _is_parameter(value: Value | None, x: Value, axis: int) -> bool:
    """Whether the value is a constant with the shape of x from `axis` on."""
    array = constant_array(value)
    return array is not None and array.shape == x.shape[axis:]


def _squared(value: Value | None) -> Value | None:
    """What the value is the square of."""
    inner = operand(value)
    return inner if value is not None and inner is not None and is_square(value, inner) else None


def _normalized(builder: Builder, node: Node, centred: Value, root: Value | None) -> Value | None:
    """The normalization without scale where `root` is the variance of `centred` and an epsilon."""
    known = _normalization(node, centred, root)
    if known is None:
        return None
    x, normalization = known
    # other extents of these axes are refused by `infer`, which then makes a second template
    ones = constant(builder, np.ones(x.shape[x.rank + normalization.axis :], x.element.dtype))
    return builder.emit(normalization, x, ones)


def _normalization(node: Node, centred: Value, root: Value | None) -> tuple[Value, LayerNormalization] | None:
    """(x, its normalization) where `root` is the variance of `centred` and an epsilon, and the node has x's type."""
    known = _centred(centred)
    if known is None or known.x.type != node.result.type:  # the epsilon may add axes
        return None
    for variance, epsilon in with_number(root, Add):
        square = operand(variance)
        if square is None or not is_square(square, centred):
            continue
        if _mean_axis(variance, known.x, square) == known.axis:
            return known.x, LayerNormalization(known.axis - known.x.rank, epsilon)
    return None


@rewrite(Mul)
def merge_scale(builder: Builder, node: Node) -> Value | None:
    for value, other in both_orders(node):
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
    for value, other in both_orders(node):
        normalization = _without_offset(builder, value)
        offset = constant_array(other)
        if normalization is None or offset is None:
            continue
        scale = normalization.operands[1]
        if scale is not None and offset.shape == scale.shape:
            return builder.emit(normalization.operator, *normalization.operands, other)
    return None


def _without_offset(builder: Builder, value: Value) -> Node | None:
    """The node of a layer normalization that has no offset and whose result nothing else reads."""
    if value.node is None or not isinstance(value.operator, LayerNormalization):
        return None
    is_open = len(value.node.operands) == 2 and builder.graph.has_single_use(value)
    return value.node if is_open else None


def _mean_axis(value: Value | None, x: Value, of: Value | None = None) -> int | None:
    """The axis of x from which on the value is the mean, those axes kept; the mean of `of`, which has x's axes."""
    if value is None or not isinstance(value.operator, ReduceMean) or operand(value) is not (x if of is None else of):
        return None
    axes = value.operator.normal_axes(x.rank)
    is_tail = bool(axes) and axes == tuple(range(axes[0], x.rank))
    return axes[0] if value.operator.keep and is_tail else None


def _centred(value: Value) -> _Centred | None:
    """x and the axis where the value is x - mean(x)."""
    x = operand(value, 0)
    if not is_made_by(value, Sub) or x is None:
        return None
    axis = _mean_axis(operand(value, 1), x)
    return None if axis is None else _Centred(x, axis)
