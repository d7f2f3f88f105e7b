"""Elementwise operators."""

from __future__ import annotations

import functools

from glowstone.graph import Operator, Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.tensors import element_type
from glowstone.ops import (
    Abs,
    Add,
    And,
    Cast,
    Ceil,
    Clip,
    Div,
    Equal,
    Erf,
    Exp,
    Floor,
    Greater,
    GreaterOrEqual,
    HardSigmoid,
    Identity,
    LeakyRelu,
    Less,
    LessOrEqual,
    Log,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Not,
    Or,
    Pow,
    Reciprocal,
    Relu,
    Round,
    Sigmoid,
    Sqrt,
    Sub,
    Tanh,
    Where,
    Xor,
)
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import FLOATS_OF_8_BITS
from glowstone.ops.elementwise import ROUNDINGS
from glowstone.types import ElementType

CAN_OVERFLOW = FLOATS_OF_8_BITS | {ElementType.F8E8M0}
DEFAULT_ROUNDING = "up"

_PLAIN: dict[str, Operator] = {
    "Abs": Abs(),
    "Add": Add(),
    "And": And(),
    "Ceil": Ceil(),
    "Div": Div(),
    "Equal": Equal(),
    "Erf": Erf(),
    "Exp": Exp(),
    "Floor": Floor(),
    "Greater": Greater(),
    "GreaterOrEqual": GreaterOrEqual(),
    "Identity": Identity(),
    "Less": Less(),
    "LessOrEqual": LessOrEqual(),
    "Log": Log(),
    "Mul": Mul(),
    "Neg": Neg(),
    "Not": Not(),
    "Or": Or(),
    "Pow": Pow(),
    "Reciprocal": Reciprocal(),
    "Relu": Relu(),
    "Round": Round(),
    "Sigmoid": Sigmoid(),
    "Sqrt": Sqrt(),
    "Sub": Sub(),
    "Tanh": Tanh(),
    "Where": Where(),
    "Xor": Xor(),
}
"""ONNX operators without attributes that mean the operator of ours."""


def _import_plain(operator: Operator, node: OnnxNode) -> Value:
    return node.emit(operator, *node.operands)


for _name, _operator in _PLAIN.items():
    imports(_name)(functools.partial(_import_plain, _operator))


def _import_chain(operator: Operator, node: OnnxNode) -> Value:
    """An operator of any number of operands, as a chain of binary ones."""
    result = node.operand(0)
    for index in range(1, len(node.operands)):
        result = node.emit(operator, result, node.operand(index))
    return result if len(node.operands) > 1 else node.emit(Identity(), result)


for _name, _operator in {"Sum": Add(), "Max": Maximum(), "Min": Minimum()}.items():
    imports(_name)(functools.partial(_import_chain, _operator))


@imports("LeakyRelu")
def import_leaky_relu(node: OnnxNode) -> Value:
    return node.emit(LeakyRelu(node.number("alpha", 0.01)), node.operand(0))


@imports("HardSigmoid")
def import_hard_sigmoid(node: OnnxNode) -> Value:
    return node.emit(HardSigmoid(node.number("alpha", 0.2), node.number("beta", 0.5)), node.operand(0))


@imports("Cast")
def import_cast(node: OnnxNode) -> Value:
    return _import_cast(node, element_type(node.integer("to", 0), "attribute to"))


@imports("CastLike", since=15)
def import_cast_like(node: OnnxNode) -> Value:
    return _import_cast(node, node.operand(1).element)


def _import_cast(node: OnnxNode, to: ElementType) -> Value:
    rounding = node.text("round_mode", DEFAULT_ROUNDING) if to is ElementType.F8E8M0 else DEFAULT_ROUNDING
    if rounding not in ROUNDINGS:
        raise node.refuse("round_mode", ", ".join(ROUNDINGS))
    return node.emit(Cast(to, saturates(node, to), rounding), node.operand(0))


def saturates(node: OnnxNode, to: ElementType) -> bool:
    """The attribute `saturate`, of targets that it has a meaning for."""
    return bool(node.integer("saturate", 1)) or to not in CAN_OVERFLOW


@imports("Clip")
def import_clip_attributes(node: OnnxNode) -> Value:
    """Clip-6: limits are attributes."""
    x = node.operand(0)
    limits = [
        scalar(node.builder, node.number(name, 0.0), x.element) if name in node.attributes else None
        for name in ("min", "max")
    ]
    return node.emit(Clip(), x, *limits)


@imports("Clip", since=11)
def import_clip(node: OnnxNode) -> Value:
    return node.emit(Clip(), *node.operands)
