"""Determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS
from glowstone.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Det(Operator):
    """The determinant of every square matrix of the last two axes. ONNX Det-11."""

    onnx = "Det-11"
    operands = (Operand("x", FLOATS),)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if x.rank < 2 or x.shape[-1] != x.shape[-2]:
            raise ShapeError("not square matrices", expected="two last axes of one extent", found=str(x.type))
        return (x.type.with_shape(x.shape[:-2]),)

    def reference(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(72)
        singular = np.array([[0, 1, 2], [0, 3, 4], [0, 5, 6]], np.float32)
        swapped = np.array([[0, 2], [3, 1]], np.float32)
        shapes = ((2, 2), (5, 3, 3), (2, 3, 6, 6), (1, 1), (0, 2, 2), (2, 0, 0))
        normal = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
        return [Sample(cls(), (x,)) for x in (*normal, singular, swapped)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.ones((2, 3), np.float32),), "not square matrices")]
