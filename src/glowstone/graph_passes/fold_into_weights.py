"""Folds batch normalization and constant scales and offsets into weights of convolutions and matrix products: what
stands behind them, per output channel or column, and what stands before them, per input channel or row.

Rounding differs from the specification's order, so strict numerics leave this out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import TAKES_IN, both_orders, operand
from glowstone.ops import Add, BatchNormalization, Conv, ConvTranspose, MatMul, Mul, Sub
from glowstone.ops.constant import constant, constant_array
from glowstone.types import CHANNEL_AXIS

Array = np.ndarray[Any, np.dtype[Any]]

MATRIX_RANK = 2


def fold_into_weights(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (fold_line_after, fold_line_before, fold_scale_into_columns, fold_scale_into_rows))


@dataclass(frozen=True)
class _Line:
    """x * factor + offset, one number each per channel."""

    x: Value
    factor: Array
    offset: Array


@rewrite(BatchNormalization, Mul, Add, Sub)
def fold_line_after(builder: Builder, node: Node) -> Value | None:
    for line in _lines(node):
        if _is_foldable(builder, line.x):
            return _rescaled(builder, line)
    return None


@rewrite(Conv)
def fold_line_before(builder: Builder, node: Node) -> Value | None:
    """Where nothing above takes the line in anyway; an offset only where no padding stands beside it."""
    x, w, *rest = node.operands
    weights = constant_array(w)
    bias = constant_array(rest[0]) if rest else None
    assert isinstance(node.operator, Conv)
    if x is None or x.node is None or weights is None or (rest and bias is None):
        return None
    if not builder.graph.has_single_use(x):
        return None
    for line in _lines(x.node):
        if isinstance(line.x.operator, TAKES_IN) or (np.any(line.offset != 0) and not _is_unpadded(node.operator)):
            continue
        groups, (outputs, inputs, *kernel) = node.operator.groups, weights.shape
        shape = (groups, outputs // groups, inputs, *kernel)
        columns = (groups, 1, inputs, *[1] * len(kernel))
        wide = weights.astype(np.float64).reshape(shape)
        scaled = (wide * line.factor.reshape(columns)).reshape(weights.shape)
        added = (wide * line.offset.reshape(columns)).reshape(outputs, -1).sum(axis=1)
        new_bias = added if bias is None else bias + added
        parameters = [constant(builder, scaled.astype(weights.dtype))]
        if rest or np.any(new_bias != 0):
            parameters.append(constant(builder, new_bias.astype(weights.dtype)))
        return builder.emit(node.operator, line.x, *parameters)
    return None


def _is_unpadded(operator: Conv) -> bool:
    return operator.padding == "valid" or (operator.padding == "explicit" and not any(operator.pads))


@rewrite(Mul)
def fold_scale_into_columns(builder: Builder, node: Node) -> Value | None:
    """(x w) * scale, per column."""
    for product, other in both_orders(node):
        weights, scale = _weights(builder, product), constant_array(other)
        if weights is None or scale is None or not builder.graph.has_single_use(product):
            continue
        is_per_column = scale.shape[-1:] == weights.shape[1:] and scale.size == weights.shape[1]
        if other.rank > product.rank or not (scale.size == 1 or is_per_column):
            continue
        scaled = weights * scale.astype(np.float64).reshape(-1)
        return builder.emit(MatMul(), operand(product), constant(builder, scaled.astype(weights.dtype)))
    return None


@rewrite(MatMul)
def fold_scale_into_rows(builder: Builder, node: Node) -> Value | None:
    """(x * scale) w, per row of w."""
    scaled_x, weights = node.operands[0], _weights(builder, node.result)
    if weights is None or scaled_x is None or scaled_x.node is None or not isinstance(scaled_x.operator, Mul):
        return None
    rows = weights.shape[0]
    for x, other in both_orders(scaled_x.node):
        scale = constant_array(other)
        if isinstance(x.operator, TAKES_IN) or not builder.graph.has_single_use(scaled_x) or x.type != scaled_x.type:
            continue
        if scale is None or scale.shape not in ((), (1,), (rows,)) or (x.dynamic and scale.size != 1):
            continue
        scaled = weights * scale.astype(np.float64).reshape(-1, 1)
        return builder.emit(MatMul(), x, constant(builder, scaled.astype(weights.dtype)))
    return None


def _weights(builder: Builder, value: Value) -> Array | None:
    """The constant matrix of floats that a product multiplies with, if nothing else does."""
    x, w = operand(value, 0), operand(value, 1)
    if not isinstance(value.operator, MatMul) or x is None or w is None or not x.element.is_float:
        return None
    array = constant_array(w)
    is_own = builder.graph.has_single_use(w) and x.rank >= MATRIX_RANK
    return array if array is not None and array.ndim == MATRIX_RANK and is_own else None


def _lines(node: Node) -> list[_Line]:
    """The node as a line per channel of an operand; two ways where both operands of a sum are constants."""
    if isinstance(node.operator, BatchNormalization):
        return _normalization(node, node.operator.epsilon)
    if not isinstance(node.operator, Mul | Add | Sub):
        return []
    lines = []
    pairs = [node.operands] if isinstance(node.operator, Sub) else [node.operands, node.operands[::-1]]
    for x, other in pairs:
        numbers = _per_channel(x, other, node.result)
        if numbers is None or x is None:
            continue
        if isinstance(node.operator, Mul):
            lines.append(_Line(x, numbers, np.zeros_like(numbers)))
        else:
            lines.append(_Line(x, np.ones_like(numbers), -numbers if isinstance(node.operator, Sub) else numbers))
    return lines


def _normalization(node: Node, epsilon: float) -> list[_Line]:
    x, *parameters = node.operands
    arrays = [constant_array(parameter) for parameter in parameters]
    if x is None or any(array is None for array in arrays):
        return []
    scale, bias, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    with np.errstate(all="ignore"):  # what is not a number stays so
        factor = scale / np.sqrt(variance + epsilon)
    return [_Line(x, factor, bias - mean * factor)]


def _is_foldable(builder: Builder, x: Value) -> bool:
    """A convolution with constant weights of floats whose result nothing else reads."""
    if not isinstance(x.operator, Conv | ConvTranspose) or x.node is None or not builder.graph.has_single_use(x):
        return False
    is_constant = all(constant_array(parameter) is not None for parameter in x.node.operands[1:])
    return is_constant and x.element.is_float


def _per_channel(x: Value | None, other: Value | None, result: Value) -> Array | None:
    """`other` as one number per channel of x, where it is such a constant and x has a static number of channels."""
    array = constant_array(other)
    if x is None or array is None or array.ndim > x.rank or x.rank <= CHANNEL_AXIS or not x.element.is_float:
        return None
    aligned = array.reshape((1,) * (x.rank - array.ndim) + array.shape)
    channels = x.shape[CHANNEL_AXIS]
    if aligned.size not in (1, channels) or aligned.size != aligned.shape[CHANNEL_AXIS] or x.type != result.type:
        return None
    return np.array(np.broadcast_to(aligned.reshape(-1), (channels,)), np.float64)


def _rescaled(builder: Builder, line: _Line) -> Value:
    """The convolution with weights times factor and bias times factor plus offset, rounded once."""
    convolution = line.x.node
    assert convolution is not None
    data, w, *rest = convolution.operands
    weights = constant_array(w)
    bias = constant_array(rest[0]) if rest else np.zeros(len(line.factor))
    assert weights is not None
    assert bias is not None
    spatial = [1] * (weights.ndim - 2)
    if isinstance(convolution.operator, ConvTranspose):
        groups, per_group = convolution.operator.groups, weights.shape[1]
        grouped = weights.reshape(groups, -1, *weights.shape[1:])
        scaled = _times(grouped, line.factor.reshape(groups, 1, per_group, *spatial)).reshape(weights.shape)
    else:
        scaled = _times(weights, line.factor.reshape(-1, 1, *spatial))
    new_bias = bias * line.factor + line.offset
    return builder.emit(
        convolution.operator,
        data,
        constant(builder, scaled),
        constant(builder, new_bias.astype(weights.dtype)),
    )


def _times(weights: Array, factor: Array) -> Array:
    """The product in float64, rounded once, without a copy of the weights in float64."""
    result = np.empty_like(weights)
    np.multiply(weights, factor, out=result, dtype=np.float64, casting="unsafe")
    return result
