"""Operators on linearly quantized numbers: QLinearAdd and its like.

Each is its operator on the numbers that are meant, quantized again: exact but for one rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from glowstone.errors import ModelError
from glowstone.graph import Operator, Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.domain import microsoft, required_integer
from glowstone.importer.rules.normalization import flattened_softmax
from glowstone.importer.rules.pooling import average_pool, max_pool
from glowstone.importer.rules.quantization import import_dequantize, import_qlinear_conv, import_quantize
from glowstone.ops import (
    Add,
    Concat,
    DequantizeLinear,
    GlobalAveragePool,
    LeakyRelu,
    Mul,
    QuantizeLinear,
    Sigmoid,
    Softmax,
    Transpose,
    Where,
)
from glowstone.ops.shape_arithmetic import reshaped
from glowstone.types import ElementType

SOFTMAX_ALONG_ONE_AXIS = 13
"""From this opset on, Softmax is along one axis; before, over all from that axis on."""

microsoft("QuantizeLinear")(import_quantize)
microsoft("DequantizeLinear")(import_dequantize)


def per_tensor(node: OnnxNode, parameter: Value | None) -> Value | None:
    """A scale or zero point of one element as a scalar: files mix shapes [] and [1]; others as they are."""
    if parameter is None or not parameter.rank or parameter.type.size != 1:
        return parameter
    return reshaped(node.builder, parameter, ())


def dequantized(node: OnnxNode, index: int) -> Value:
    """The numbers meant by operand `index`, whose scale and zero point follow it."""
    x, scale, zero_point = node.operand(index), node.operand(index + 1), node.optional(index + 2)
    return node.emit(DequantizeLinear(), x, per_tensor(node, scale), per_tensor(node, zero_point))


def quantized(node: OnnxNode, x: Value, index: int, element: ElementType) -> Value:
    """x quantized to the scale that is operand `index` and the zero point that follows it."""
    zero_point = node.optional(index + 1)
    to = element if zero_point is None else zero_point.element
    return node.emit(QuantizeLinear(to=to), x, per_tensor(node, node.operand(index)), per_tensor(node, zero_point))


def channels_first(node: OnnxNode, x: Value) -> Value:
    """[N, spatial..., C] as [N, C, spatial...] where attribute `channels_last` says so; else x."""
    return to_channels_first(node, x) if node.flag("channels_last") else x


def channels_last(node: OnnxNode, x: Value) -> Value:
    """The reverse of `channels_first`."""
    return to_channels_last(node, x) if node.flag("channels_last") else x


def to_channels_first(node: OnnxNode, x: Value) -> Value:
    return node.emit(Transpose((0, x.rank - 1, *range(1, x.rank - 1))), x)


def to_channels_last(node: OnnxNode, x: Value) -> Value:
    return node.emit(Transpose((0, *range(2, x.rank), 1)), x)


def _import_binary(operator: Operator, node: OnnxNode) -> Value:
    """Operands are A, its scale and zero point, B and its own, and those of the result."""
    return quantized(node, node.emit(operator, dequantized(node, 0), dequantized(node, 3)), 6, node.operand(0).element)


for _name, _operator in (("QLinearAdd", Add()), ("QLinearMul", Mul())):
    microsoft(_name)(functools.partial(_import_binary, _operator))


def _unary(node: OnnxNode, function: Callable[[Value], Value]) -> Value:
    """Operands are X, its scale and zero point, and those of the result."""
    return quantized(node, function(dequantized(node, 0)), 3, node.operand(0).element)


@microsoft("QLinearSigmoid")
def import_sigmoid(node: OnnxNode) -> Value:
    return _unary(node, lambda x: node.emit(Sigmoid(), x))


@microsoft("QLinearLeakyRelu")
def import_leaky_relu(node: OnnxNode) -> Value:
    return _unary(node, lambda x: node.emit(LeakyRelu(node.number("alpha", 0.01)), x))


@microsoft("QLinearSoftmax")
def import_softmax(node: OnnxNode) -> Value:
    """Attribute `opset` says which opset's Softmax is meant."""
    if required_integer(node, "opset") < SOFTMAX_ALONG_ONE_AXIS:
        return _unary(node, lambda x: flattened_softmax(node, x))
    return _unary(node, lambda x: node.emit(Softmax(node.integer("axis", -1)), x))


@microsoft("QLinearAveragePool")
def import_average_pool(node: OnnxNode) -> Value:
    return _unary(node, lambda x: channels_last(node, average_pool(node, channels_first(node, x))))


@microsoft("QLinearGlobalAveragePool")
def import_global_average_pool(node: OnnxNode) -> Value:
    return _unary(node, lambda x: channels_last(node, node.emit(GlobalAveragePool(), channels_first(node, x))))


@microsoft("NhwcMaxPool")
def import_nhwc_max_pool(node: OnnxNode) -> Value:
    return to_channels_last(node, max_pool(node, to_channels_first(node, node.operand(0))))


@microsoft("QLinearConv")
def import_convolution(node: OnnxNode) -> Value:
    """QLinearConv of the default domain, or with the channels of x and y last; weights are as ever."""
    x = channels_first(node, node.operand(0))
    return channels_last(node, import_qlinear_conv(node.with_operands(x, *node.operands[1:])))


@microsoft("QLinearConcat")
def import_concat(node: OnnxNode) -> Value:
    """Operands are scale and zero point of the result, then every part with its own."""
    if len(node.operands) < 5 or len(node.operands) % 3 != 2:
        raise ModelError("parts of a concatenation come with scale and zero point", found=len(node.operands))
    parts = [dequantized(node, index) for index in range(2, len(node.operands), 3)]
    joined = node.emit(Concat(required_integer(node, "axis")), *parts)
    return quantized(node, joined, 0, node.operand(2).element)


@microsoft("QLinearWhere")
def import_where(node: OnnxNode) -> Value:
    """Operands are the condition, X with scale and zero point, Y with its own, and those of the result."""
    chosen = node.emit(Where(), node.operand(0), dequantized(node, 1), dequantized(node, 4))
    return quantized(node, chosen, 7, node.operand(1).element)
