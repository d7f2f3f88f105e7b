"""Pooling that says where it found what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.graph import Operand, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import POOLED
from glowstone.ops.pooling import Pooling
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class MaxPoolWithIndices(Pooling):
    """Largest element of each window, and its position in x counted over all axes. ONNX MaxPool-12.

    Positions count planes [N, C] in row-major order and, inside a plane, the first spatial axis fastest where
    `column_major`, else the last. Of equal elements the first is taken, in row-major order.
    """

    onnx = "MaxPool-12"
    operands = (Operand("x", POOLED),)
    result_names = ("y", "indices")
    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    padding: str = "explicit"
    ceil_mode: bool = False
    column_major: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (largest,) = super().infer(*operands)
        return largest, largest.with_element(ElementType.I64)

    def reference(self, x: Array) -> tuple[Array, ...]:
        windows = self._windows(x, -np.inf)
        spatial = x.shape[2:]
        numbers = np.arange(math.prod(spatial)).reshape(spatial, order="F" if self.column_major else "C")
        places = self._windows(np.broadcast_to(numbers, x.shape), -1.0)
        windows = np.where(places < 0, -np.inf, windows)
        first = np.expand_dims(windows.argmax(axis=-1), -1)
        planes = np.arange(math.prod(x.shape[:2])).reshape((*x.shape[:2], *[1] * len(spatial)))
        indices = np.take_along_axis(places, first, -1)[..., 0] + planes * math.prod(spatial)
        return np.take_along_axis(windows, first, -1)[..., 0].astype(x.dtype), indices.astype(np.int64)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(42)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls((3, 3), (2, 2), pads=(1, 1, 1, 1)), (normal(2, 3, 9, 8),)),
            Sample(cls((2, 3), (1, 2), (2, 1)), (normal(1, 2, 6, 7),)),
            Sample(cls((3,), (2,), (1,), (1, 1)), (normal(1, 4, 9),)),
            Sample(cls((2, 2), (2, 2), column_major=True), (normal(2, 2, 4, 6),)),
            Sample(cls((2, 2), (1, 1)), (random.integers(-3, 3, (1, 2, 4, 5), np.int8),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((3, 3)), (np.ones((1, 1, 2, 2), np.float32),), "larger than the padded input")]
