"""Constants of the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import LimitError, ShapeError, UnknownValueError
from glowstone.graph import Builder, Operand, Operator, Sample, Tensor, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import SHAPES
from glowstone.scalar import Literal, literal_array
from glowstone.types import LARGEST_EXTENT, ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

LITERAL_BITS = 8
"""Significant bits of the longest number that is written into code."""


@operator
class Constant(Operator):
    """A tensor known at compile time, in any layout; the array is logical. ONNX Constant-13 and initializers."""

    onnx = "Constant-13"
    tensor: Tensor
    channel_block: int | None = None

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        return (self.tensor.type.with_channel_block(self.channel_block),)

    def reference(self, *operands: Any) -> Array:
        return self.tensor.array

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))), ())]


@operator
class ConstantOfShape(Operator):
    """A tensor of the given shape with one value everywhere. ONNX ConstantOfShape-9."""

    onnx = "ConstantOfShape-9"
    operands = (Operand("shape", SHAPES, host=True),)
    value: float | int | bool = 0.0
    element: ElementType = ElementType.F32

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        return (TensorType(self.element, known_shape(operands[0], "shape")),)

    def reference(self, shape: Array) -> Array:
        return np.broadcast_to(np.asarray(self.value, self.element.dtype), tuple(int(extent) for extent in shape))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(1.5, ElementType.F32), (np.array([2, 3]),)),
            Sample(cls(7, ElementType.I64), (np.array([0, 3]),)),
            Sample(cls(True, ElementType.BOOL), (np.array([], np.int64),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.array([-1]),), "negative extent")]


def constant(builder: Builder, array: Array, element: ElementType | None = None) -> Value:
    """A `Constant` node that holds the array."""
    return builder.emit(Constant(Tensor(array, element)))


def scalar(builder: Builder, value: float | int | bool, element: ElementType) -> Value:
    """A rank-0 constant."""
    return constant(builder, literal_array(Literal(element, value)), element)


def constant_array(value: Value | None) -> Array | None:
    """The array of a `Constant` node, or None where the value is not one."""
    if value is not None and isinstance(value.operator, Constant):
        return value.operator.tensor.array
    return None


def literal(value: Value | None) -> Literal | None:
    """The number of a constant of one element that belongs into code: 0, 1, 6, 0.5 and such, of few significant bits.

    Other numbers are data, such as a learned scale: written into code, every layer would need kernels of its own.
    """
    array = constant_array(value)
    if array is None or array.size != 1:
        return None
    assert value is not None
    number = array.reshape(()).item()
    if isinstance(number, float) and math.isfinite(number):
        mantissa, _ = math.frexp(number)
        if not (mantissa * 2.0**LITERAL_BITS).is_integer():
            return None
    return Literal(value.element, number)


def known_array(value: Value, name: str) -> Array:
    """The value of a host operand.

    Raises:
        UnknownValueError: the value depends on data that arrives with a call.
    """
    if value.known is None:
        raise UnknownValueError(f"operand {name} depends on input data", value=value)
    return value.known


def known_shape(value: Value, name: str) -> tuple[int, ...]:
    """The value of a host operand that lists extents.

    Raises:
        ShapeError: it is unknown or no vector, or an extent is negative.
        LimitError: an extent is larger than any tensor can have.
    """
    if value.rank != 1:
        raise ShapeError(f"operand {name} is no list of extents", expected="rank 1", found=str(value.type))
    extents = tuple(int(extent) for extent in known_array(value, name))
    for extent in extents:
        if extent < 0:
            raise ShapeError(f"operand {name} has a negative extent", found=list(extents))
        if extent > LARGEST_EXTENT:
            raise LimitError("an extent is too large", expected=f"at most {LARGEST_EXTENT}", found=extent)
    return extents
