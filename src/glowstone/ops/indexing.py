"""Operators that address by data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import ANY, INDICES
from glowstone.types import TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Gather(Operator):
    """Slices of x along an axis at the indices; negative ones count from the back. ONNX Gather-13."""

    onnx = "Gather-13"
    operands = (Operand("x", ANY), Operand("indices", INDICES))
    axis: int = 0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, indices = operands
        axis = normalize_axis(self.axis, x.rank)
        return (TensorType(x.element, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)

    def reference(self, x: Array, indices: Array) -> Array:
        extent = x.shape[self.axis]
        bad = (indices < -extent) | (indices >= extent)
        if np.any(bad):
            raise ExecutionError(
                "index out of range",
                operator="Gather",
                expected=f"{-extent} to {extent - 1}",
                found=int(np.asarray(indices)[bad].flat[0]),
            )
        return np.asarray(np.take(x, indices, axis=self.axis))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
        return [
            Sample(cls(0), (x, np.array([2, 0, -1]))),
            Sample(cls(1), (x, np.array([[1, 3], [-4, 0]], np.int32))),
            Sample(cls(-1), (x, np.array(2))),
            Sample(cls(0), (np.arange(5), np.array([4, 4]))),
            Sample(cls(0), (x, np.zeros((0, 2), np.int64))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(2), (x, np.array([0])), "axis out of range"),
            ErrorSample(cls(), (x, x), "does not take this element type"),
        ]
