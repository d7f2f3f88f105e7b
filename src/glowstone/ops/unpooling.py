"""The reverse of a pooling with indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_shape, scalar
from glowstone.ops.element_sets import FLOATS, SHAPES
from glowstone.ops.elementwise import Add, Mul, Sub
from glowstone.ops.scatter import ScatterElements
from glowstone.ops.shape import Concat
from glowstone.ops.shape_arithmetic import extents, joined, reshaped, sliced, stretched, vector
from glowstone.ops.window import Window
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

FIRST_SPATIAL = 2


@operator
class MaxUnpool(Operator):
    """Zeros but for the elements of x, each at its index. ONNX MaxUnpool-11.

    Indices count the elements of the tensor that a pooling with this window, these strides and pads was made of; where
    `output_shape` is larger than that, zeros follow on every axis.
    """

    onnx = "MaxUnpool-11"
    operands = (
        Operand("x", FLOATS),
        Operand("indices", frozenset({ElementType.I64})),
        Operand("output_shape", SHAPES, optional=True, host=True),
    )
    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, indices = operands[:2]
        count = x.rank - FIRST_SPATIAL
        if count < 1:
            raise ShapeError("x has no spatial axis", expected="[N, C, ...]", found=list(x.shape))
        Window(self.kernel, self.strides, (1,) * len(self.kernel), self.pads).check(count)
        if indices.shape != x.shape:
            raise ShapeError("one index for each element of x", expected=list(x.shape), found=list(indices.shape))
        own = self._own_shape(x.shape)
        if len(operands) < 3 or operands[2] is None:
            return (x.type.with_shape(own),)
        shape = known_shape(operands[2], "output_shape")
        if len(shape) != x.rank or any(given < least for given, least in zip(shape, own, strict=True)):
            raise ShapeError("output_shape is too small", expected=list(own), found=list(shape))
        return (x.type.with_shape(shape),)

    def _offsets(self) -> tuple[int, ...]:
        """What the extents are longer than x's times the strides."""
        count = len(self.kernel)
        return tuple(
            self.kernel[axis] - self.strides[axis] - self.pads[axis] - self.pads[axis + count] for axis in range(count)
        )

    def _own_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        spatial = zip(shape[FIRST_SPATIAL:], self.strides, self._offsets(), strict=True)
        return (*shape[:FIRST_SPATIAL], *(extent * stride + offset for extent, stride, offset in spatial))

    def reference(self, x: Array, indices: Array, output_shape: Array | None = None) -> Array:
        own = self._own_shape(x.shape)
        flat = np.zeros(int(np.prod(own)), x.dtype)
        flat[indices.ravel()] = x.ravel()
        if output_shape is None:
            return flat.reshape(own)
        result = np.zeros(tuple(int(extent) for extent in output_shape), x.dtype)
        result[tuple(slice(0, extent) for extent in own)] = flat.reshape(own)
        return result

    def decompose(self, builder: Builder, x: Value, indices: Value, output_shape: Value | None = None) -> Value:
        longer = builder.emit(Mul(), extents(builder, x, FIRST_SPATIAL), vector(builder, self.strides))
        spatial = builder.emit(Add(), longer, vector(builder, self._offsets()))
        own = joined(builder, extents(builder, x, 0, FIRST_SPATIAL), spatial)
        zero = scalar(builder, 0.0, x.element)
        empty = reshaped(builder, stretched(builder, zero, own), -1)
        flat = builder.emit(ScatterElements(0), empty, reshaped(builder, indices, -1), reshaped(builder, x, -1))
        result = reshaped(builder, flat, own)
        if output_shape is None:
            return result
        for axis in range(x.rank):
            wanted = sliced(builder, output_shape, 0, axis, axis + 1)
            missing = builder.emit(Sub(), wanted, extents(builder, result, axis, axis + 1))
            before, after = extents(builder, result, 0, axis), extents(builder, result, axis + 1)
            result = builder.emit(Concat(axis), result, stretched(builder, zero, before, missing, after))
        return result

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.array([[[[1, 2], [3, 4]]]], np.float32)
        indices = np.array([[[[5, 7], [13, 15]]]], np.int64)
        line = np.array([[[1.0, 2.0]]], np.float32)
        return [
            Sample(cls((2, 2), (2, 2)), (x, indices)),
            Sample(cls((2, 2), (2, 2)), (x, indices, np.array([1, 1, 4, 4]))),
            Sample(cls((2,), (2,), (0, 0)), (line, np.array([[[1, 2]]]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, indices = np.ones((1, 1, 2, 2), np.float32), np.zeros((1, 1, 2, 2), np.int64)
        return [
            ErrorSample(cls((2,)), (x, indices), "do not fit the rank"),
            ErrorSample(cls((2**63 - 1, 2), (2, 2), (-(2**63), 0, 0, 0)), (x, indices), "out of range"),
            ErrorSample(cls((2, 2), (2, 2)), (x, indices[..., 0]), "one index for each element"),
            ErrorSample(cls((2, 2), (2, 2)), (x, indices, np.array([1, 1, 3, 4])), "output_shape is too small"),
        ]
