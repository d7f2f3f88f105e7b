"""Constant, ConstantOfShape."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError, UnsupportedError
from glowstone.graph import Tensor, Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Constant, ConstantOfShape
from glowstone.types import ElementType

_NUMBER_ATTRIBUTES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


@imports("Constant")
def import_constant(node: OnnxNode) -> Value:
    for name, dtype in _NUMBER_ATTRIBUTES.items():
        if name in node.attributes:
            return node.emit(Constant(Tensor(np.asarray(node.get(name), dtype))))
    tensor = node.get("value")
    if not isinstance(tensor, Tensor):
        raise UnsupportedError(
            "this form of Constant is not supported",
            expected=", ".join(("value", *_NUMBER_ATTRIBUTES)),
            found=", ".join(node.attributes),
        )
    return node.emit(Constant(tensor))


@imports("ConstantOfShape")
def import_constant_of_shape(node: OnnxNode) -> Value:
    tensor = node.get("value")
    if tensor is None:
        return node.emit(ConstantOfShape(0.0, ElementType.F32), node.operand(0))
    if tensor.array.size != 1:
        raise ModelError("attribute value of ConstantOfShape is no single element", expected=1, found=tensor.array.size)
    return node.emit(ConstantOfShape(tensor.array.reshape(()).item(), tensor.element), node.operand(0))
