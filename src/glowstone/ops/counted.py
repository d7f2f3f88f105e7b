"""Operators whose results have as many elements as the data say.

Each gives its results one after the other from the start of a buffer of the largest possible size, with zeros behind
them, and how many there are as an i64[1]. Whoever knows the count gives the results their shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import ALL, BOOLS
from glowstone.types import ElementType, TensorType, is_float_dtype, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]

COUNT = TensorType(ElementType.I64, (1,))


def padded(found: Array, size: int) -> Array:
    """The elements in row-major order, then zeros up to `size`."""
    result = np.zeros(size, found.dtype)
    result[: found.size] = found.reshape(-1)
    return result


def _count(number: int | np.integer[Any]) -> Array:
    return np.array([number], np.int64)


def _positions(*shape: int) -> TensorType:
    return TensorType(ElementType.I64, shape)


@operator
class NonZero(Operator):
    """Where x is not zero, in row-major order: one row of coordinates for each axis of x. What ONNX NonZero-13 finds.

    `positions` holds [rank, count] elements; rank 0 has no coordinates.
    """

    operands = (Operand("x", ALL),)
    result_names = ("positions", "count")

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        return (_positions(x.rank * x.type.size), COUNT)

    def reference(self, x: Array) -> tuple[Array, Array]:
        found = np.argwhere(x).astype(np.int64).T
        return padded(found, x.ndim * x.size), _count(np.count_nonzero(x))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(70).integers(-1, 2, (3, 4, 5)).astype(np.float32)
        arrays = [x, x[0], x[0, 0], x[:, :0], np.zeros((2, 3), np.float32), np.float32(2.0), np.float32(0.0), x[0] > 0]
        signed = np.array([0.0, -0.0, np.nan, np.inf, 1e-40], np.float32)
        elements = ALL - {ElementType.F32, ElementType.BOOL}
        return [
            *(Sample(cls(), (np.asarray(array),)) for array in (*arrays, signed)),
            *element_samples(cls(), elements, np.abs(x[1])),
        ]


@operator
class Compress(Operator):
    """The slices of x along an axis (of x flattened where None) where `condition` holds. What ONNX Compress-11 keeps.

    `condition` may be shorter than the axis; what it does not reach is left out. `y` holds x's shape with the count
    at the axis.
    """

    operands = (Operand("x", ALL), Operand("condition", BOOLS))
    result_names = ("y", "count")
    axis: int | None = None

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, condition = operands
        extent = x.type.size if self.axis is None else x.shape[normalize_axis(self.axis, x.rank)]
        if condition.rank != 1 or condition.shape[0] > extent:
            raise ShapeError(
                "the condition does not fit the axis", expected=f"at most {extent} elements", found=str(condition.type)
            )
        return (TensorType(x.element, (x.type.size,)), COUNT)

    def reference(self, x: Array, condition: Array) -> tuple[Array, Array]:
        return padded(np.compress(condition, x, self.axis), x.size), _count(np.count_nonzero(condition))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        cases = [(None, 24), (None, 7), (0, 2), (1, 3), (1, 2), (-1, 4), (2, 0), (None, 0)]
        random = np.random.default_rng(71)
        return [
            *(Sample(cls(axis), (x, random.random(length) > 0.4)) for axis, length in cases),
            Sample(cls(1), (x[:0], np.array([True, False, True]))),
            Sample(cls(0), (x, np.array([False, False]))),
            *element_samples(cls(0), ALL - {ElementType.F32}, x[0], fixed=(np.array([True, False, True]),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(0), (x, np.ones(3, bool)), "the condition does not fit"),
            ErrorSample(cls(0), (x, np.ones((1, 1), bool)), "the condition does not fit"),
            ErrorSample(cls(2), (x, np.ones(1, bool)), "axis out of range"),
        ]


@operator
class Unique(Operator):
    """The distinct slices of x along an axis (elements of x flattened where None). What ONNX Unique-11 finds.

    In ascending order, slices by their first element that differs, or by first occurrence where not `ordered`. NaN
    equals NaN and is larger than every number. `y` holds x's shape with the count at the axis; `first` holds where
    each occurs first, `occurrences` how often; `inverse` says of every slice of x which of the distinct ones it is.
    """

    operands = (Operand("x", ALL),)
    result_names = ("y", "first", "inverse", "occurrences", "count")
    axis: int | None = None
    ordered: bool = True

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        length = x.type.size if self.axis is None else x.shape[normalize_axis(self.axis, x.rank)]
        return (TensorType(x.element, (x.type.size,)), *(_positions(length) for _ in range(3)), COUNT)

    def reference(self, x: Array) -> tuple[Array, ...]:
        moved = x.reshape(-1, 1) if self.axis is None else np.moveaxis(x, self.axis, 0)
        length = moved.shape[0]
        numbers = _ranks(moved.reshape(length, math.prod(moved.shape[1:])))
        distinct, first, inverse, occurrences = np.unique(
            numbers, return_index=True, return_inverse=True, return_counts=True
        )
        if not self.ordered:
            order = np.argsort(first)
            first, occurrences, inverse = first[order], occurrences[order], np.argsort(order)[inverse]
        y = x.reshape(-1)[first] if self.axis is None else np.take(x, first, self.axis)
        return (
            padded(y, x.size),
            padded(first.astype(np.int64), length),
            inverse.reshape(length).astype(np.int64),
            padded(occurrences.astype(np.int64), length),
            _count(len(distinct)),
        )

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(72)
        x = random.integers(-2, 3, (4, 5, 3)).astype(np.float32)
        rows = random.integers(0, 2, (2, 9, 2)).astype(np.float32)
        special = np.array([np.nan, 1, -np.inf, np.nan, -0.0, 0.0, np.inf, 1], np.float32)
        cases = [(x, None), (x[0, 0], 0), (rows, 1), (rows, -1), (x[:, 0], 0), (special, None)]
        cases += [(x[:0], None), (x[:0], 0), (x[:, :, :0], 1), (np.asarray(np.float32(3)), None)]
        elements = ALL - {ElementType.F32}
        return [
            *(Sample(cls(axis, ordered), (array,)) for array, axis in cases for ordered in (True, False)),
            *element_samples(cls(), elements, np.abs(x[1])),
            *element_samples(cls(1, False), elements, np.abs(rows[0].T)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(2), (np.ones((2, 3), np.float32),), "axis out of range")]


def _ranks(rows: Array) -> Array:
    """For every row its place among the distinct rows in ascending order."""
    keys = rows.astype(np.float64) if is_float_dtype(rows.dtype) else rows
    ranks = np.zeros(len(rows), np.int64)
    for column in keys.T[::-1]:  # from the least significant element on, so that ties keep the order so far
        places = np.unique(column, return_inverse=True)[1].reshape(-1)
        ranks = places * (len(rows) + 1) + np.unique(ranks, return_inverse=True)[1].reshape(-1)
    return np.asarray(np.unique(ranks, return_inverse=True)[1])
