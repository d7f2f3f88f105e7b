"""TensorScatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import ANY, SHAPES
from glowstone.types import TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class TensorScatter(Operator):
    """A cache with an update written along an axis, from a start of its own in each batch. ONNX TensorScatter-24.

    Starts are 0 where left out. With `circular` places behind the end are those at the beginning.
    """

    onnx = "TensorScatter-24"
    operands = (Operand("cache", ANY), Operand("update", ANY), Operand("starts", SHAPES, optional=True))
    axis: int = -2
    circular: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        cache, update = operands[:2]
        axis = normalize_axis(self.axis, cache.rank)
        if axis == 0:
            raise ShapeError("axis 0 is the batch", expected="another axis", found=self.axis)
        fits = cache.rank == update.rank and cache.element is update.element
        pairs = enumerate(zip(cache.shape, update.shape, strict=False))
        if not fits or any(mine < theirs or (mine > theirs and place != axis) for place, (mine, theirs) in pairs):
            raise ShapeError(
                "the update does not fit the cache",
                expected=f"{cache.type}, or fewer on axis {axis}",
                found=str(update.type),
            )
        if len(operands) > 2 and operands[2].shape != cache.shape[:1]:
            raise ShapeError("one start for each batch", expected=[cache.shape[0]], found=list(operands[2].shape))
        return (cache.type,)

    def reference(self, cache: Array, update: Array, starts: Array | None = None) -> Array:
        axis = self.axis % cache.ndim
        extent, count = cache.shape[axis], update.shape[axis]
        result = cache.copy()
        for batch in range(cache.shape[0]):
            places = np.arange(count) + (0 if starts is None else starts[batch])
            if self.circular and extent:
                places %= extent
            bad = (places < -extent) | (places >= extent)
            if bad.any():
                expected = f"{-extent} to {extent - 1}"
                raise ExecutionError(
                    "index out of range", operator=self.name, expected=expected, found=int(places[bad][0])
                )
            target = np.moveaxis(result[batch], axis - 1, 0)
            target[places] = np.moveaxis(update[batch], axis - 1, 0)
        return result

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        cache = np.arange(48, dtype=np.float32).reshape(2, 2, 4, 3)
        update = -np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3)
        return [
            Sample(cls(), (cache, update, np.array([1, 2]))),
            Sample(cls(), (cache, update)),
            Sample(cls(circular=True), (cache, update, np.array([3, 0]))),
            Sample(cls(-1), (cache, -cache, np.array([0, 0]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        cache, update = np.ones((2, 4, 3), np.float32), np.ones((2, 2, 3), np.float32)
        return [
            ErrorSample(cls(), (cache, update[..., :2]), "does not fit the cache"),
            ErrorSample(cls(0), (cache, update), "axis 0 is the batch"),
            ErrorSample(cls(), (cache, update, np.array([1])), "one start for each batch"),
        ]
