"""Folds batch normalization and constant scales and offsets per channel into the weights of the convolution before.

Rounding differs from the specification's order, so strict numerics leave this out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Add, BatchNormalization, Conv, Mul, Sub
from glowstone.ops.constant import constant, constant_array

Array = np.ndarray[Any, np.dtype[Any]]


def fold_into_weights(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (fold_batch_normalization, fold_scale, fold_offset))


@rewrite(BatchNormalization)
def fold_batch_normalization(builder: Builder, node: Node) -> Value | None:
    x, *parameters = node.operands
    arrays = [constant_array(parameter) for parameter in parameters]
    if x is None or not _is_foldable(builder, x) or any(array is None for array in arrays):
        return None
    assert isinstance(node.operator, BatchNormalization)
    scale, bias, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    with np.errstate(all="ignore"):  # what is not a number stays so
        factor = scale / np.sqrt(variance + node.operator.epsilon)
    return _rescaled(builder, x, factor, bias - mean * factor)


@rewrite(Mul)
def fold_scale(builder: Builder, node: Node) -> Value | None:
    for x, other in (node.operands, node.operands[::-1]):
        factor = _per_channel(builder, x, other)
        if factor is not None:
            assert x is not None
            return _rescaled(builder, x, factor, np.zeros_like(factor))
    return None


@rewrite(Add, Sub)
def fold_offset(builder: Builder, node: Node) -> Value | None:
    pairs = [node.operands] if isinstance(node.operator, Sub) else [node.operands, node.operands[::-1]]
    for x, other in pairs:
        offset = _per_channel(builder, x, other)
        if offset is not None:
            assert x is not None
            sign = -1.0 if isinstance(node.operator, Sub) else 1.0
            return _rescaled(builder, x, np.ones_like(offset), sign * offset)
    return None


def _is_foldable(builder: Builder, x: Value) -> bool:
    """A convolution with constant weights whose result nothing else reads."""
    if not isinstance(x.operator, Conv) or x.node is None or not builder.graph.has_single_use(x):
        return False
    return all(constant_array(parameter) is not None for parameter in x.node.operands[1:])


def _per_channel(builder: Builder, x: Value | None, other: Value | None) -> Array | None:
    """`other` as one number per channel of x, where x is foldable and `other` such a constant."""
    if x is None or other is None or not _is_foldable(builder, x):
        return None
    array = constant_array(other)
    if array is None or array.ndim > x.rank:
        return None
    aligned = array.reshape((1,) * (x.rank - array.ndim) + array.shape)
    channels = x.shape[1]
    if aligned.size not in (1, channels) or aligned.shape[1] not in (1, channels) or aligned.size != aligned.shape[1]:
        return None
    return np.array(np.broadcast_to(aligned.reshape(-1), (channels,)), np.float64)


def _rescaled(builder: Builder, x: Value, factor: Array, offset: Array) -> Value:
    """The convolution with weights times factor and bias times factor plus offset, rounded once."""
    assert x.node is not None
    data, w, *rest = x.node.operands
    weights = constant_array(w)
    bias = constant_array(rest[0]) if rest else np.zeros(len(factor))
    assert weights is not None
    assert bias is not None
    scaled = weights * factor.reshape(-1, *[1] * (weights.ndim - 1))
    new_bias = bias * factor + offset
    return builder.emit(
        x.node.operator,
        data,
        constant(builder, scaled.astype(weights.dtype)),
        constant(builder, new_bias.astype(weights.dtype)),
    )
