"""Softmax, LayerNormalization."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Add, Flatten, LayerNormalization, Mul, Reshape, Shape, Softmax
from glowstone.ops.composed_normalization import inverse_root, moments
from glowstone.ops.widening import converted
from glowstone.types import ElementType, normalize_axis


@imports("Softmax")
def import_flattened_softmax(node: OnnxNode) -> Value:
    """Softmax-1 to 11."""
    return flattened_softmax(node, node.operand(0))


def flattened_softmax(node: OnnxNode, x: Value) -> Value:
    """Softmax over all axes from attribute `axis` on, taken as one."""
    axis = normalize_axis(node.integer("axis", 1), x.rank) if x.rank else 0
    if axis == x.rank - 1:
        return node.emit(Softmax(-1), x)
    flat = node.emit(Softmax(-1), node.emit(Flatten(axis), x))
    return node.emit(Reshape(True), flat, node.emit(Shape(), x))


@imports("Softmax", since=13)
def import_softmax(node: OnnxNode) -> Value:
    return node.emit(Softmax(node.integer("axis", -1)), node.operand(0))


@imports("LayerNormalization", since=17)
def import_layer_normalization(node: OnnxNode) -> Value | tuple[Value, ...]:
    """The optional results Mean and InvStdDev, and scales of another shape than the normalized axes, go by moments."""
    if node.integer("stash_type", 1) != 1:
        raise node.refuse("stash_type", 1)
    x, scale, bias = node.operand(0), node.operand(1), node.optional(2)
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", 1e-5)
    tail = x.shape[normalize_axis(axis, x.rank) :]
    is_plain = all(parameter is None or parameter.shape == tail for parameter in (scale, bias))
    if is_plain and node.result_count == 1:
        return node.emit(LayerNormalization(axis, epsilon), x, scale, bias)
    axes = tuple(range(normalize_axis(axis, x.rank), x.rank))
    mean, centred, variance = moments(node.builder, converted(node.builder, x, ElementType.F32), axes)
    factor = inverse_root(node.builder, variance, epsilon)
    if is_plain:
        return node.emit(LayerNormalization(axis, epsilon), x, scale, bias), mean, factor
    normal = converted(node.builder, node.emit(Mul(), centred, factor), x.element)
    product = node.emit(Mul(), normal, scale)
    return (product if bias is None else node.emit(Add(), product, bias)), mean, factor
