"""Constant, ConstantOfShape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glowstone.errors import ModelError, UnsupportedError
from glowstone.graph import Tensor, Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Constant, ConstantOfShape
from glowstone.types import ElementType

_NUMBERS: dict[str, Callable[[OnnxNode], Tensor]] = {
    "value_float": lambda node: Tensor(np.array(node.number("value_float", 0.0), np.float32)),
    "value_floats": lambda node: Tensor(np.array(node.number_list("value_floats"), np.float32)),
    "value_int": lambda node: Tensor(np.array(node.integer("value_int", 0), np.int64)),
    "value_ints": lambda node: Tensor(np.array(node.integer_list("value_ints"), np.int64)),
}


@imports("Constant")
def import_constant(node: OnnxNode) -> Value:
    for name, read in _NUMBERS.items():
        if name in node.attributes:
            return node.emit(Constant(read(node)))
    tensor = node.tensor("value")
    if tensor is None:
        raise UnsupportedError(
            "this form of Constant is not supported",
            expected=", ".join(("value", *_NUMBERS)),
            found=", ".join(node.attributes) or "no attribute",
        )
    return node.emit(Constant(tensor))


@imports("ConstantOfShape")
def import_constant_of_shape(node: OnnxNode) -> Value:
    tensor = node.tensor("value")
    if tensor is None:
        return node.emit(ConstantOfShape(0.0, ElementType.F32), node.operand(0))
    if tensor.array.size != 1:
        raise ModelError("attribute value of ConstantOfShape is no single element", expected=1, found=tensor.array.size)
    return node.emit(ConstantOfShape(tensor.array.reshape(()).item(), tensor.element), node.operand(0))
