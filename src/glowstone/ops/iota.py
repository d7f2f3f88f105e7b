"""Counting: the numbers that positions are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_shape
from glowstone.ops.element_sets import SHAPES
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Iota(Operator):
    """0, 1, 2 ... in row-major order over a tensor of the given shape. What masks of positions are made of."""

    operands = (Operand("shape", SHAPES, host=True),)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        return (TensorType(ElementType.I64, known_shape(operands[0], "shape")),)

    def reference(self, shape: Array) -> Array:
        return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(tuple(int(n) for n in shape))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(), (np.array(shape, np.int64),)) for shape in ([5], [2, 3])]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.array([-1]),), "negative extent")]
