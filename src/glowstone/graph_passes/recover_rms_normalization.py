"""Recovers RMSNormalization: x / sqrt(mean(x^2) + epsilon) over the last axes, times a scale of those axes.

Casts to float32 around it, as exporters write for 16-bit floats, are left out: the operator computes in float32 anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import both_orders, inverse_root_of, is_made_by, is_square, operand, with_number
from glowstone.ops import Add, Cast, Div, Mul, ReduceMean, RMSNormalization, Sqrt
from glowstone.ops.constant import constant_array
from glowstone.types import ElementType


def recover_rms_normalization(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (recover_scaled, recover_scaled_inverse))


@dataclass(frozen=True)
class _Normal:
    """x / sqrt(mean(x^2) + epsilon) over the axes from `axis` on."""

    x: Value
    axis: int
    epsilon: float


@rewrite(Mul)
def recover_scaled(builder: Builder, node: Node) -> Value | None:
    if not node.result.element.is_float:
        return None
    for scaled, scale in both_orders(node):
        narrow = operand(scaled) if is_made_by(scaled, Cast) else None
        normal = _normal(scaled if narrow is None else narrow)
        array = constant_array(scale)
        if normal is None or array is None or array.shape != normal.x.shape[normal.axis :]:
            continue
        x = normal.x
        source = operand(x) if is_made_by(x, Cast) else None
        if source is not None and source.element.is_float and x.element is ElementType.F32:
            x = source
        if scale.element is node.result.element and (narrow is None or narrow.element is ElementType.F32):
            return builder.emit(RMSNormalization(normal.axis - x.rank, normal.epsilon), x, scale)
    return None


@rewrite(Mul)
def recover_scaled_inverse(builder: Builder, node: Node) -> Value | None:
    """x * (scale / sqrt(mean(x^2) + epsilon))."""
    for x, factor in both_orders(node):
        if x.type != node.result.type or not x.element.is_float or factor.node is None or not is_made_by(factor, Mul):
            continue
        for inverse, scale in both_orders(factor.node):
            normal, array = _over(x, inverse_root_of(inverse)), constant_array(scale)
            if normal is not None and array is not None and array.shape == x.shape[normal.axis :]:
                return builder.emit(RMSNormalization(normal.axis - x.rank, normal.epsilon), x, scale)
    return None


def _normal(value: Value) -> _Normal | None:
    if value.node is None:
        return None
    if isinstance(value.operator, Div):
        x, deviation = value.node.operands
        root = operand(deviation) if is_made_by(deviation, Sqrt) else None
        return _over(x, root) if x is not None else None
    if isinstance(value.operator, Mul):
        for x, inverse in both_orders(value.node):
            found = _over(x, inverse_root_of(inverse))
            if found is not None:
                return found
    return None


def _over(x: Value, root: Value | None) -> _Normal | None:
    """The normalization of x where `root` is the mean of its squares and an epsilon."""
    for mean, epsilon in with_number(root, Add):
        square = operand(mean)
        if square is None or not isinstance(mean.operator, ReduceMean) or not is_square(square, x):
            continue
        axes = mean.operator.normal_axes(x.rank)
        if mean.operator.keep and axes and axes == tuple(range(axes[0], x.rank)):
            return _Normal(x, axes[0], epsilon)
    return None
