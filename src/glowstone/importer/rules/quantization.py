"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and products of quantized numbers."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.rules.convolution import window_of_weights
from glowstone.importer.rules.elementwise import saturates
from glowstone.importer.tensors import element_type
from glowstone.ops import (
    ConvInteger,
    DequantizeLinear,
    DynamicQuantizeLinear,
    MatMulInteger,
    QLinearConv,
    QLinearMatMul,
    QuantizeLinear,
)
from glowstone.types import ElementType


def _element(node: OnnxNode, attribute: str) -> ElementType | None:
    """An element type named by an attribute; None where it is 0 or left out."""
    number = node.integer(attribute, 0)
    return element_type(number, f"attribute {attribute}") if number else None


@imports("QuantizeLinear", since=10)
def import_quantize(node: OnnxNode) -> Value:
    zero_point = node.optional(2)
    given = _element(node, "output_dtype")
    to = zero_point.element if zero_point is not None and given is None else given or ElementType.U8
    operator = QuantizeLinear(
        node.integer("axis", 1),
        node.integer("block_size", 0),
        to,
        _element(node, "precision"),
        saturates(node, to),
    )
    return node.emit(operator, node.operand(0), node.operand(1), zero_point)


@imports("DequantizeLinear", since=10)
def import_dequantize(node: OnnxNode) -> Value:
    scale = node.operand(1)
    to = _element(node, "output_dtype") or scale.element.wide
    operator = DequantizeLinear(node.integer("axis", 1), node.integer("block_size", 0), to)
    return node.emit(operator, node.operand(0), scale, node.optional(2))


@imports("DynamicQuantizeLinear", since=11)
def import_dynamic_quantize(node: OnnxNode) -> tuple[Value, ...]:
    return node.builder.emit_node(DynamicQuantizeLinear(), node.operand(0)).results


@imports("MatMulInteger", since=10)
def import_matmul_integer(node: OnnxNode) -> Value:
    return node.emit(MatMulInteger(), *node.operands)


@imports("QLinearMatMul", since=10)
def import_qlinear_matmul(node: OnnxNode) -> Value:
    return node.emit(QLinearMatMul(), *node.operands)


@imports("ConvInteger", since=10)
def import_conv_integer(node: OnnxNode) -> Value:
    window = window_of_weights(node, node.operand(1))
    operator = ConvInteger(window.strides, window.dilations, window.pads, node.integer("group", 1), window.padding)
    return node.emit(operator, *node.operands)


@imports("QLinearConv", since=10)
def import_qlinear_conv(node: OnnxNode) -> Value:
    window = window_of_weights(node, node.operand(3))
    operator = QLinearConv(window.strides, window.dilations, window.pads, node.integer("group", 1), window.padding)
    return node.emit(operator, *node.operands)
