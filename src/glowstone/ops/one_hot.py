"""OneHot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array
from glowstone.ops.element_sets import ANY, NUMBERS
from glowstone.scalar import convert
from glowstone.types import LARGEST_EXTENT, ElementType, TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class OneHot(Operator):
    """`values[1]` where the position along a new axis of extent `depth` is the index, else `values[0]`. ONNX OneHot-11.

    Indices are truncated to integers and count from the back where negative; one out of range is nowhere.
    """

    onnx = "OneHot-11"
    operands = (Operand("indices", NUMBERS), Operand("depth", NUMBERS, host=True), Operand("values", ANY))
    axis: int = -1

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        indices, depth, values = operands
        if values.shape != (2,):
            raise ShapeError("values are an off and an on value", expected=[2], found=list(values.shape))
        axis = normalize_axis(self.axis, indices.rank + 1)
        extent = known_depth(depth)
        return (TensorType(values.element, (*indices.shape[:axis], extent, *indices.shape[axis:])),)

    def reference(self, indices: Array, depth: Array, values: Array) -> Array:
        extent = int(np.asarray(depth).reshape(()))
        axis = normalize_axis(self.axis, np.ndim(indices) + 1)
        whole = np.expand_dims(convert(np.asarray(indices), ElementType.I64), axis)
        places = np.arange(extent).reshape(-1, *[1] * (np.ndim(indices) - axis))
        return np.asarray(np.where(np.where(whole < 0, whole + extent, whole) == places, values[1], values[0]))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        indices, values = np.array([[0, 2], [-1, 1]]), np.array([-1, 3], np.float32)
        return [
            Sample(cls(), (indices, np.array(4), values)),
            Sample(cls(1), (indices.astype(np.int32), np.array(3, np.int32), values)),
            Sample(cls(0), (indices.astype(np.float32), np.array(3.0, np.float32), values)),
            Sample(cls(-2), (np.array([1, 7, -9]), np.array(3), np.array([2, 5]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        indices = np.array([0, 1])
        return [
            ErrorSample(cls(), (indices, np.array(2), np.array([1, 2, 3])), "an off and an on value"),
            ErrorSample(cls(2), (indices, np.array(2), np.array([1, 2])), "axis out of range"),
            ErrorSample(cls(), (indices, np.array(-2), np.array([1, 2])), "not a depth"),
            ErrorSample(cls(), (indices, np.array(np.inf, np.float32), np.array([1, 2])), "not a depth"),
        ]


def known_depth(depth: Value) -> int:
    """The extent of the new axis.

    Raises:
        ShapeError: it is unknown.
        ModelError: it is not one number, or out of range.
    """
    number = known_array(depth, "depth")
    if number.size != 1 or not 0 <= float(number.reshape(())) <= LARGEST_EXTENT:
        raise ModelError("not a depth", expected=f"one number, 0 to {LARGEST_EXTENT}", found=number.tolist())
    return int(number.reshape(()))
