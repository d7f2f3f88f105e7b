"""Products of quantized numbers: QGemm, MatMulIntegerToFloat, DynamicQuantizeMatMul, DynamicQuantizeLSTM."""

from __future__ import annotations

import math

from glowstone.errors import ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.domain import microsoft, with_bias
from glowstone.importer.rules.microsoft.quantized import per_tensor, quantized
from glowstone.importer.rules.recurrent import import_lstm
from glowstone.ops import Add, Cast, DynamicQuantizeLinear, MatMulInteger, Mul, Sub, Transpose
from glowstone.ops.constant import scalar
from glowstone.ops.shape_arithmetic import reshaped
from glowstone.types import ElementType

F32 = ElementType.F32


def scaled(node: OnnxNode, sums: Value, *scales: Value | None) -> Value:
    """int32 sums times scales, as floats of the scales' type; the scales broadcast to the sums."""
    factors = [factor for factor in (per_tensor(node, scale) for scale in scales) if factor is not None]
    factor = factors[0]
    for further in factors[1:]:
        factor = node.emit(Mul(), factor, further)
    return node.emit(Mul(), node.emit(Cast(factor.element), sums), factor)


@microsoft("MatMulIntegerToFloat")
def import_matmul_integer_to_float(node: OnnxNode) -> Value:
    """(A - A zero point) (B - B zero point) times both scales, plus a bias."""
    a, b, a_scale, b_scale = (node.operand(index) for index in range(4))
    sums = node.emit(MatMulInteger(), a, b, per_tensor(node, node.optional(4)), per_tensor(node, node.optional(5)))
    return with_bias(node, scaled(node, sums, a_scale, b_scale), node.optional(6))


@microsoft("DynamicQuantizeMatMul")
def import_dynamic_quantize_matmul(node: OnnxNode) -> Value:
    """`MatMulIntegerToFloat` of A quantized over its own range."""
    a, a_scale, a_zero = node.builder.emit_node(DynamicQuantizeLinear(), node.operand(0)).results
    sums = node.emit(MatMulInteger(), a, node.operand(1), a_zero, per_tensor(node, node.optional(3)))
    return with_bias(node, scaled(node, sums, a_scale, node.operand(2)), node.optional(4))


@microsoft("QGemm")
def import_qgemm(node: OnnxNode) -> Value:
    """alpha (op(A) op(B) + C) at the scales of A and B, quantized where a scale of Y is given.

    Operands are A, B with scale and zero point each, C in int32 and units of the product, scale and zero point of Y.
    """
    a, b = (
        node.emit(Transpose((1, 0)), node.operand(index)) if node.flag(name) else node.operand(index)
        for index, name in ((0, "transA"), (3, "transB"))
    )
    zeros = (per_tensor(node, node.optional(index)) for index in (2, 5))
    sums = node.emit(MatMulInteger(), a, b, *zeros)
    c = node.optional(6)
    if c is not None:
        sums = node.emit(Add(), sums, c)
    alpha = scalar(node.builder, node.number("alpha", 1.0), node.operand(1).element)
    product = scaled(node, sums, node.operand(1), node.operand(4), alpha)
    return product if node.optional(7) is None else quantized(node, product, 7, a.element)


WEIGHTS = {1: (8, 9), 2: (10, 11)}
"""Scale and zero point of W and R, as indices of operands."""
LSTM_OPERANDS = 8


@microsoft("DynamicQuantizeLSTM")
def import_dynamic_quantize_lstm(node: OnnxNode) -> tuple[Value, ...]:
    """LSTM with the numbers meant by quantized weights W [directions, inputs, 4 H] and R [directions, H, 4 H].

    What is multiplied with them stays as it is: it is not quantized, which loses less and needs no other kernel.
    """
    operands = list(node.operands[:LSTM_OPERANDS])
    for index, (scale, zero_point) in WEIGHTS.items():
        weights = node.operand(index)
        if weights.rank != 3:
            raise ShapeError("quantized weights are not of rank 3", expected="rank 3", found=str(weights.type))
        meant = _meant_weights(node, weights, node.operand(scale), node.optional(zero_point))
        operands[index] = node.emit(Transpose((0, 2, 1)), meant)
    return import_lstm(node.with_operands(*operands))


def _meant_weights(node: OnnxNode, weights: Value, scale: Value, zero_point: Value | None) -> Value:
    """(weights - zero_point) * scale; both are per direction, or per direction and column."""
    directions, _, columns = weights.shape
    shape = (directions, 1, columns if scale.type.size > directions else 1)
    for name, parameter in (("scale", scale), ("zero point", zero_point)):
        if parameter is not None and parameter.type.size != math.prod(shape):
            raise ShapeError(f"the {name} does not fit the weights", expected=list(shape), found=list(parameter.shape))
    number = node.emit(Cast(F32), weights)
    if zero_point is not None:
        number = node.emit(Sub(), number, node.emit(Cast(F32), reshaped(node.builder, zero_point, shape)))
    return node.emit(Mul(), number, reshaped(node.builder, scale, shape))
