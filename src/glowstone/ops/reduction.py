"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample, sum_bound
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import ALL, FLOATS, INTEGERS
from glowstone.ops.elementwise import Cast
from glowstone.ops.shape import Transpose, unsqueeze
from glowstone.scalar import convert
from glowstone.types import ElementType, TensorType, is_float_dtype, normalize_axes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Reduction(Operator):
    """Base: reduce `axes` (all where None); reduced axes stay with extent 1 where `keep`.

    `mode` names the low-level reduction.
    """

    operands = (Operand("x", FLOATS | INTEGERS),)
    mode: ClassVar[str] = ""
    sampled: ClassVar[frozenset[ElementType]] = FLOATS | INTEGERS
    """Element types of the samples."""
    keeps_single: ClassVar[bool] = True
    """Whether the reduction of one element is that element."""
    axes: tuple[int, ...] | None = None
    keep: bool = True

    def normal_axes(self, rank: int) -> tuple[int, ...]:
        """The axes reduced, counted from the front, in order."""
        return tuple(range(rank)) if self.axes is None else normalize_axes(self.axes, rank)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        axes = self.normal_axes(x.rank)
        shape = tuple(
            1 if axis in axes else extent for axis, extent in enumerate(x.shape) if self.keep or axis not in axes
        )
        return (x.type.with_shape(shape),)

    def reference(self, x: Array) -> Array:
        axes = self.normal_axes(np.ndim(x))
        with np.errstate(all="ignore"):
            return convert(np.asarray(self._reduce(np.asarray(x), axes)), ElementType.from_dtype(x.dtype))

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        raise NotImplementedError

    def ulp_bound(self, *operands: Value | None) -> float:
        """Sums over the elements reduced."""
        (x,) = operands
        return sum_bound(math.prod(x.shape[axis] for axis in self.normal_axes(x.rank)) if x is not None else 1)

    def decompose(self, builder: Builder, x: Value) -> Value | None:
        """Axes that are not neighbours are brought together by a transposition first."""
        axes = self.normal_axes(x.rank)
        if not axes or axes == tuple(range(axes[0], axes[-1] + 1)):
            return None
        kept = tuple(axis for axis in range(x.rank) if axis not in axes)
        moved = builder.emit(Transpose((*kept, *axes)), x)
        last = tuple(range(len(kept), x.rank))
        reduced = builder.emit(type(self)(last, False), moved)
        return unsqueeze(builder, reduced, axes) if self.keep else reduced

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(9)
        x = random.uniform(-2, 2, (2, 3, 4, 5)).astype(np.float32)
        cases: list[tuple[tuple[int, ...] | None, bool]] = [
            (None, False),
            (None, True),
            ((-1,), True),
            ((1,), False),
            ((2, 3), True),
            ((0, 2), True),
            ((1, 3), False),
        ]
        long = random.uniform(-2, 2, (3, 1000)).astype(np.float32)
        numbers = np.array([[1, 2, 3], [4, 1, 1], [2, 3, 4], [1, 1, 1]])
        return [
            *(Sample(cls(axes, keep), (x,)) for axes, keep in cases),
            Sample(cls((1,), False), (long,)),
            *element_samples(cls((1,), True), cls.sampled - {ElementType.F32}, numbers),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls((2,), False), (x,), "axis out of range"),
            ErrorSample(cls((0, -2), False), (x,), "named twice"),
        ]


@operator
class ReduceSum(Reduction):
    """Sum over axes. ONNX ReduceSum-13."""

    onnx = "ReduceSum-13"
    mode = "sum"

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.asarray(x.sum(axis=axes, keepdims=self.keep, dtype=_wide(x)))


@operator
class ReduceMean(Reduction):
    """Mean over axes; NaN of nothing. Means of integers truncate. ONNX ReduceMean-18."""

    onnx = "ReduceMean-18"
    mode = "mean"

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        count = math.prod(x.shape[axis] for axis in axes)
        wide = np.float64 if is_float_dtype(x.dtype) else np.uint64 if x.dtype.kind == "u" else np.int64
        return np.asarray(x.sum(axis=axes, keepdims=self.keep, dtype=wide) / np.float64(count))


@dataclass(frozen=True, eq=False)
class Extremum(Reduction):
    """Base of ReduceMax and ReduceMin: false is below true."""

    operands = (Operand("x", ALL),)
    sampled = ALL

    def decompose(self, builder: Builder, x: Value) -> Value | None:
        if x.element is not ElementType.BOOL:
            return super().decompose(builder, x)
        number = builder.emit(self, builder.emit(Cast(ElementType.U8), x))
        return builder.emit(Cast(ElementType.BOOL), number)


@operator
class ReduceMax(Extremum):
    """Largest element over axes; NaN where there is one. ONNX ReduceMax-20."""

    onnx = "ReduceMax-20"
    mode = "max"

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.asarray(x.max(axis=axes, keepdims=self.keep, initial=_limits(x)[0]))


@operator
class ReduceMin(Extremum):
    """Smallest element over axes; NaN where there is one. ONNX ReduceMin-20."""

    onnx = "ReduceMin-20"
    mode = "min"

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.asarray(x.min(axis=axes, keepdims=self.keep, initial=_limits(x)[1]))


@operator
class ReduceProd(Reduction):
    """Product over axes. ONNX ReduceProd-18."""

    onnx = "ReduceProd-18"
    mode = "prod"

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.asarray(x.prod(axis=axes, keepdims=self.keep, dtype=_wide(x)))


def _wide(x: Array) -> Any:
    return np.float64 if is_float_dtype(x.dtype) else x.dtype


def _limits(x: Array) -> tuple[Any, Any]:
    """What the extrema of nothing are: the lowest and the highest value of the element type."""
    if x.dtype == np.bool_:
        return False, True
    if is_float_dtype(x.dtype):
        return -np.inf, np.inf
    limits = np.iinfo(x.dtype)
    return limits.min, limits.max
