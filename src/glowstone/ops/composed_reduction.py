"""Reductions that are sums of something else: norms, sums of squares, logarithms of sums.

16-bit floats are widened first, for their squares and exponentials overflow; integers go through float64 where a
square root or a logarithm follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from glowstone.graph import Builder, Value, operator
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import FLOATS
from glowstone.ops.elementwise import Abs, Add, Cast, Exp, Less, Log, Mul, Sqrt, Sub, Where
from glowstone.ops.reduction import ReduceMax, ReduceSum, Reduction
from glowstone.ops.shape import Squeeze
from glowstone.ops.widening import computed_element
from glowstone.types import ElementType, is_float_dtype

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class ComposedReduction(Reduction):
    """Base: `compose` reduces x, which has the element type to compute in."""

    sampled = FLOATS | {ElementType.I64, ElementType.U64}
    keeps_integers: ClassVar[bool] = True

    def compose(self, builder: Builder, x: Value) -> Value:
        """The reduction from simpler operators."""
        raise NotImplementedError

    def decompose(self, builder: Builder, x: Value) -> Value | None:
        wide = _wide_element(x.element, self.keeps_integers)
        if wide is x.element:
            return self.compose(builder, x)
        return builder.emit(Cast(x.element), self.compose(builder, builder.emit(Cast(wide), x)))

    def sum(self, builder: Builder, x: Value) -> Value:
        """The sum over this reduction's axes."""
        return builder.emit(ReduceSum(self.axes, self.keep), x)

    def numpy_sum(self, x: Array, axes: tuple[int, ...]) -> Array:
        """`sum` in NumPy."""
        return np.asarray(np.sum(x, axis=axes, keepdims=self.keep, dtype=x.dtype))


def _wide_element(element: ElementType, keeps_integers: bool) -> ElementType:
    if element.is_float:
        return computed_element(element)
    return element if keeps_integers else ElementType.F64


def _float64_or_integer(x: Array) -> Array:
    return x.astype(np.float64) if is_float_dtype(x.dtype) else x


@operator
class ReduceL1(ComposedReduction):
    """Sum of magnitudes over axes. ONNX ReduceL1-18."""

    onnx = "ReduceL1-18"
    keeps_single = False

    def compose(self, builder: Builder, x: Value) -> Value:
        return self.sum(builder, builder.emit(Abs(), x))

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return self.numpy_sum(np.abs(_float64_or_integer(x)), axes)


@operator
class ReduceL2(ComposedReduction):
    """Square root of the sum of squares over axes. ONNX ReduceL2-18."""

    onnx = "ReduceL2-18"
    keeps_single = False
    keeps_integers = False

    def compose(self, builder: Builder, x: Value) -> Value:
        return builder.emit(Sqrt(), self.sum(builder, builder.emit(Mul(), x, x)))

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.sqrt(self.numpy_sum(np.square(x.astype(np.float64)), axes))


@operator
class ReduceSumSquare(ComposedReduction):
    """Sum of squares over axes. ONNX ReduceSumSquare-18."""

    onnx = "ReduceSumSquare-18"
    keeps_single = False

    def compose(self, builder: Builder, x: Value) -> Value:
        return self.sum(builder, builder.emit(Mul(), x, x))

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return self.numpy_sum(np.square(_float64_or_integer(x)), axes)


@operator
class ReduceLogSum(ComposedReduction):
    """Logarithm of the sum over axes. ONNX ReduceLogSum-18."""

    onnx = "ReduceLogSum-18"
    keeps_single = False
    sampled = FLOATS
    keeps_integers = False

    def compose(self, builder: Builder, x: Value) -> Value:
        return builder.emit(Log(), self.sum(builder, x))

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.log(self.numpy_sum(x.astype(np.float64), axes))


@operator
class ReduceLogSumExp(ComposedReduction):
    """Logarithm of the sum of exponentials over axes; large terms do not overflow. ONNX ReduceLogSumExp-18."""

    onnx = "ReduceLogSumExp-18"
    sampled = FLOATS
    keeps_integers = False

    def compose(self, builder: Builder, x: Value) -> Value:
        largest = builder.emit(ReduceMax(self.axes), x)
        infinity, zero = (scalar(builder, number, x.element) for number in (math.inf, 0.0))
        is_finite = builder.emit(Less(), builder.emit(Abs(), largest), infinity)
        offset = builder.emit(Where(), is_finite, largest, zero)
        powers = builder.emit(Exp(), builder.emit(Sub(), x, offset))
        total = builder.emit(Log(), builder.emit(ReduceSum(self.axes), powers))
        result = builder.emit(Add(), total, offset)
        return result if self.keep else builder.emit(Squeeze(self.normal_axes(x.rank)), result)

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.asarray(np.logaddexp.reduce(_one_axis(x.astype(np.float64), axes), axis=-1)).reshape(
            self._shape(x.shape, axes)
        )

    def _shape(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            1 if axis in axes else extent for axis, extent in enumerate(shape) if self.keep or axis not in axes
        )


def _one_axis(x: Array, axes: tuple[int, ...]) -> Array:
    """The axes brought to the end as one."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = np.transpose(x, [*kept, *axes])
    return moved.reshape(*moved.shape[: len(kept)], math.prod(moved.shape[len(kept) :]))
