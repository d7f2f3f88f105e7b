"""Mathematical functions, questions about numbers, and forms of identity."""

from __future__ import annotations

import functools

from glowstone.errors import UnsupportedError
from glowstone.graph import Operator, Value
from glowstone.importer.registry import OnnxNode, imports
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
    """Dropout as it is in inference: the input itself, and a mask that is true everywhere."""
    x = node.operand(0)
    training, ratio = node.constant(2, "training_mode"), node.optional(1)
    drops = ratio is None or ratio.known is None or bool(ratio.known.any())
    if training is not None and training.any() and drops:
        raise UnsupportedError("dropout in training is not supported", expected="training_mode 0", found=1)
    result = node.emit(Identity(), x)
    if node.result_count == 1:
        return (result,)
    is_bool = node.opset >= BOOLEAN_MASK_OPSET
    mask = ConstantOfShape(True, ElementType.BOOL) if is_bool else ConstantOfShape(1.0, x.element)
    return result, node.emit(mask, node.emit(Shape(), x))
