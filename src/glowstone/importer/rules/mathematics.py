"""Mathematical functions, questions about numbers, and forms of identity."""

from __future__ import annotations

import functools

from glowstone.graph import Operator, Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.rules.random import dropped
from glowstone.ops import (
    Acos,
    Acosh,
    Add,
    Asin,
    Asinh,
    Atan,
    Atanh,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Cast,
    ConstantOfShape,
    Cos,
    Cosh,
    Div,
    Identity,
    IsInf,
    IsNaN,
    Shape,
    Sign,
    Sin,
    Sinh,
    Tan,
)
from glowstone.ops.constant import scalar
from glowstone.types import ElementType

DEFAULT_DROPOUT = 0.5
BOOLEAN_MASK_OPSET = 10
"""Before, the mask of Dropout has the input's element type."""
_PLAIN: dict[str, Operator] = {
    "Acos": Acos(),
    "Acosh": Acosh(),
    "Asin": Asin(),
    "Asinh": Asinh(),
    "Atan": Atan(),
    "Atanh": Atanh(),
    "BitwiseAnd": BitwiseAnd(),
    "BitwiseNot": BitwiseNot(),
    "BitwiseOr": BitwiseOr(),
    "BitwiseXor": BitwiseXor(),
    "Cos": Cos(),
    "Cosh": Cosh(),
    "IsNaN": IsNaN(),
    "Sign": Sign(),
    "Sin": Sin(),
    "Sinh": Sinh(),
    "Tan": Tan(),
}


def _import_plain(operator: Operator, node: OnnxNode) -> Value:
    return node.emit(operator, *node.operands)


for _name, _operator in _PLAIN.items():
    imports(_name)(functools.partial(_import_plain, _operator))


@imports("IsInf", since=10)
def import_is_inf(node: OnnxNode) -> Value:
    flags = (bool(node.integer(name, 1)) for name in ("detect_negative", "detect_positive"))
    return node.emit(IsInf(*flags), node.operand(0))


@imports("Mean")
def import_mean(node: OnnxNode) -> Value:
    total = node.operand(0)
    for index in range(1, len(node.operands)):
        total = node.emit(Add(), total, node.operand(index))
    return node.emit(Div(), total, scalar(node.builder, len(node.operands), total.element))


@imports("Dropout")
def import_dropout(node: OnnxNode) -> tuple[Value, ...]:
    """Out of training it is the input itself, and a mask that is true everywhere."""
    x, training = node.operand(0), node.constant(2, "training_mode")
    if training is not None and training.any():
        ratio = node.optional(1) or scalar(node.builder, DEFAULT_DROPOUT, ElementType.F32)
        result, mask = dropped(node, x, ratio)
    else:
        result = node.emit(Identity(), x)
        mask = node.emit(ConstantOfShape(True, ElementType.BOOL), node.emit(Shape(), x))
    if node.result_count == 1:
        return (result,)
    return result, mask if node.opset >= BOOLEAN_MASK_OPSET else node.emit(Cast(x.element), mask)
