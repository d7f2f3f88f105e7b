"""Poolings made of simpler ones: global maxima, p-norms; and the reverse of a pooling with indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import FLOATS, HALVES
from glowstone.ops.elementwise import Abs, Mul, Pow, Sqrt
from glowstone.ops.pooling import Pooling
from glowstone.ops.reduction import ReduceMax, ReduceSum
from glowstone.ops.widening import in_float32
from glowstone.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]


def _normal(*shape: int) -> Array:
    return np.random.default_rng(41).standard_normal(shape).astype(np.float32)


class GlobalPooling(Operator):
    """Base: all spatial axes of x [N, C, spatial] become extent 1."""

    operands = (Operand("x", FLOATS),)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if x.rank < 3:
            raise ShapeError("x has no spatial axes", expected="rank 3 or more", found=str(x.type))
        return (x.type.with_shape((*x.shape[:2], *[1] * (x.rank - 2))),)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(), (_normal(*shape),)) for shape in ((1, 20, 7, 7), (2, 3, 5), (1, 2, 3, 2, 4))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.ones((2, 3), np.float32),), "no spatial axes")]


@operator
class GlobalMaxPool(GlobalPooling):
    """Largest element over all spatial axes, kept as extent 1. ONNX GlobalMaxPool-1."""

    onnx = "GlobalMaxPool-1"

    def reference(self, x: Array) -> Array:
        return np.asarray(x.max(axis=tuple(range(2, x.ndim)), keepdims=True))

    def decompose(self, builder: Builder, x: Value) -> Value:
        return builder.emit(ReduceMax(tuple(range(2, x.rank)), True), x)


def _raised(builder: Builder, x: Value, p: int) -> Value:
    """|x| to the power p."""
    if p == 1:
        return builder.emit(Abs(), x)
    if p == 2:
        return builder.emit(Mul(), x, x)
    return builder.emit(Pow(), builder.emit(Abs(), x), scalar(builder, p, x.element))


def _root(builder: Builder, x: Value, p: int) -> Value:
    """The p-th root of numbers that are not negative."""
    if p == 1:
        return x
    if p == 2:
        return builder.emit(Sqrt(), x)
    return builder.emit(Pow(), x, scalar(builder, 1 / p, x.element))


@operator
class GlobalLpPool(GlobalPooling):
    """p-norm over all spatial axes, kept as extent 1. ONNX GlobalLpPool-2."""

    onnx = "GlobalLpPool-2"
    p: int = 2

    def reference(self, x: Array) -> Array:
        powers = np.abs(x.astype(np.float64)) ** self.p
        return np.asarray(powers.sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / self.p)).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value) -> Value:
        if x.element in HALVES:
            return in_float32(builder, self, x)[0]
        sums = builder.emit(ReduceSum(tuple(range(2, x.rank)), True), _raised(builder, x, self.p))
        return _root(builder, sums, self.p)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [*super().samples(), *(Sample(cls(p), (_normal(2, 3, 5),)) for p in (1, 3))]


@operator
class SumPool(Pooling):
    """Sum of each window; padding counts as 0. What p-norms are made of."""

    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    padding: str = "explicit"
    ceil_mode: bool = False

    def reference(self, x: Array) -> Array:
        return np.asarray(self._windows(x, 0.0).sum(axis=-1)).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls((3, 3), (1, 1), pads=(1, 1, 1, 1)), (_normal(2, 9, 5, 6),))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((3, 3)), (np.ones((1, 1, 2, 2), np.float32),), "larger than the padded input")]


@operator
class LpPool(Pooling):
    """p-norm of each window; padding counts as 0. ONNX LpPool-18."""

    onnx = "LpPool-18"
    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    padding: str = "explicit"
    ceil_mode: bool = False
    p: int = 2

    def reference(self, x: Array) -> Array:
        powers = np.abs(self._windows(x, 0.0)) ** self.p
        return np.asarray(powers.sum(axis=-1) ** (1 / self.p)).astype(x.dtype)

    def decompose(self, builder: Builder, *operands: Value) -> Value | tuple[Value, ...] | None:
        (x,) = operands
        if x.element in HALVES:
            return super().decompose(builder, x)
        sums = SumPool(self.kernel, self.strides, self.dilations, self.pads, self.padding, self.ceil_mode)
        return _root(builder, builder.emit(sums, _raised(builder, x, self.p)), self.p)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls((3, 3), (2, 2), pads=(1, 1, 1, 1)), (_normal(1, 8, 7, 7),)),
            Sample(cls((2,), (2,), (1,), (0, 0), p=1), (_normal(1, 4, 9),)),
            Sample(cls((2, 2), (1, 1), (2, 2), p=3), (_normal(1, 3, 6, 6),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((3, 3)), (np.ones((1, 1, 2, 2), np.float32),), "larger than the padded input")]
