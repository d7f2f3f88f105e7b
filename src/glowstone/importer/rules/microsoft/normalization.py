"""Layer normalization with sums and tables before it."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.rules.microsoft.domain import microsoft, with_bias
from glowstone.ops import (
    Add,
    Cast,
    ConstantOfShape,
    Equal,
    Gather,
    Iota,
    LayerNormalization,
    Mul,
    ReduceMean,
    ReduceSum,
    RMSNormalization,
)
from glowstone.ops.composed_normalization import inverse_root, moments
from glowstone.ops.constant import scalar
from glowstone.ops.shape_arithmetic import extents
from glowstone.ops.widening import converted
from glowstone.types import ElementType, normalize_axis

SIMPLIFIED_EPSILON = 1e-5
"""The default of SimplifiedLayerNormalization and of SkipSimplifiedLayerNormalization's first form."""
EPSILON = 1e-12
"""The default of the others."""


@imports("SimplifiedLayerNormalization")
@microsoft("SimplifiedLayerNormalization")
def import_simplified_layer_normalization(node: OnnxNode) -> Value | tuple[Value, ...]:
    """RMSNormalization; the second result is 1 / sqrt(mean of squares + epsilon)."""
    if node.integer("stash_type", 1) != 1:
        raise node.refuse("stash_type", 1)
    x, scale = node.operand(0), node.operand(1)
    axis, epsilon = node.integer("axis", -1), node.number("epsilon", SIMPLIFIED_EPSILON)
    y = node.emit(RMSNormalization(axis, epsilon), x, scale)
    if node.result_count == 1:
        return y
    return y, _inverse_root_mean_square(node, x, normalize_axis(axis, x.rank), epsilon)


def _inverse_root_mean_square(node: OnnxNode, x: Value, axis: int, epsilon: float) -> Value:
    wide = converted(node.builder, x, ElementType.F32)
    mean = node.emit(ReduceMean(tuple(range(axis, x.rank))), node.emit(Mul(), wide, wide))
    return inverse_root(node.builder, mean, epsilon)


@microsoft("SkipLayerNormalization")
def import_skip_layer_normalization(node: OnnxNode) -> tuple[Value, ...]:
    """LayerNormalization of input + skip + bias; results are y, the mean, 1 / deviation, and the sum."""
    epsilon = node.number("epsilon", EPSILON)
    total = _sum_with_skip(node, node.optional(4))
    y = node.emit(LayerNormalization(-1, epsilon), total, node.operand(2), node.optional(3))
    mean, _, variance = moments(node.builder, converted(node.builder, total, ElementType.F32), (total.rank - 1,))
    return y, mean, inverse_root(node.builder, variance, epsilon), total


@microsoft("SkipSimplifiedLayerNormalization")
def import_skip_simplified_layer_normalization(node: OnnxNode) -> tuple[Value, ...]:
    """RMSNormalization of input + skip + bias; results are y, a mean of 0, 1 / root mean square, and the sum."""
    epsilon = node.number("epsilon", EPSILON)
    total = _sum_with_skip(node, node.optional(3))
    y = node.emit(RMSNormalization(-1, epsilon), total, node.operand(2))
    factor = _inverse_root_mean_square(node, total, total.rank - 1, epsilon)
    zero = node.emit(ConstantOfShape(0.0, factor.element), extents(node.builder, factor))
    return y, zero, factor, total


def _sum_with_skip(node: OnnxNode, bias: Value | None) -> Value:
    """input + skip + bias; what is added broadcasts to the input."""
    x, skip = node.operand(0), node.operand(1)
    total = with_bias(node, node.emit(Add(), x, skip), bias)
    if total.shape != x.shape:
        raise ShapeError("skip and bias do not broadcast to the input", expected=list(x.shape), found=list(skip.shape))
    return total


@microsoft("EmbedLayerNormalization")
def import_embed_layer_normalization(node: OnnxNode) -> tuple[Value, ...]:
    """LayerNormalization of the sum of word, position and segment embeddings.

    Results are y, how many entries of the mask are 1 in each batch (0 without a mask), and the sum.
    """
    return embedded(
        node,
        lambda table, places: node.emit(Gather(0), node.operand(table), places),
        (node.operand(5), node.operand(6)),
        node.optional(7),
        node.optional(8),
    )


def embedded(
    node: OnnxNode,
    look_up: Callable[[int, Value], Value],
    parameters: tuple[Value, Value],
    mask: Value | None,
    places: Value | None,
) -> tuple[Value, ...]:
    """The results of EmbedLayerNormalization.

    `look_up` gives rows of the table of words, positions or segments, operand 2, 3 or 4; `parameters` are scale and
    bias; `places` are 0, 1, 2 ... where they are left out.
    """
    ids, segments = node.operand(0), node.optional(1)
    if ids.rank != 2:
        raise ShapeError("word IDs are no matrix", expected="[batch, positions]", found=str(ids.type))
    if (segments is None) != (node.optional(4) is None):
        raise ModelError("segment IDs and their embedding go together", found="one of them")
    places = places or node.emit(Iota(), extents(node.builder, ids, 1))
    total = node.emit(Add(), look_up(2, ids), look_up(3, places))
    if segments is not None:
        total = node.emit(Add(), total, look_up(4, segments))
    y = node.emit(LayerNormalization(-1, node.number("epsilon", EPSILON)), total, *parameters)
    return y, _count_of_ones(node, ids, mask), total


def _count_of_ones(node: OnnxNode, ids: Value, mask: Value | None) -> Value:
    """How many entries of the mask are 1, by batch, in int32."""
    if mask is None:
        return node.emit(ConstantOfShape(0, ElementType.I32), extents(node.builder, ids, 0, 1))
    ones = node.emit(Equal(), mask, scalar(node.builder, 1, mask.element))
    return node.emit(ReduceSum((1,), False), node.emit(Cast(ElementType.I32), ones))
