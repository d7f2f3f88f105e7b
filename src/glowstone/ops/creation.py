"""Tensors made from a few numbers: ranges, identity matrices, triangles, windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from glowstone.errors import LimitError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array, scalar
from glowstone.ops.element_sets import ALL, ANY, FLOATS, INDICES
from glowstone.ops.elementwise import HALF_TOLERANCES, Add, Cast, Equal, LessOrEqual, Where
from glowstone.ops.iota import Iota
from glowstone.ops.shape import Shape, Unsqueeze
from glowstone.types import LARGEST_EXTENT, ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
RANGE_ELEMENTS = FLOATS | INDICES | {ElementType.I16}


@operator
class Range(Operator):
    """start, start + delta ... up to but not at limit. 16-bit floats are computed wider. ONNX Range-27."""

    onnx = "Range-27"
    operands = tuple(Operand(name, RANGE_ELEMENTS, host=True) for name in ("start", "limit", "delta"))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        start, limit, delta = (known_array(value, name) for value, name in zip(operands, _RANGE_NAMES, strict=True))
        for value, name in zip(operands, _RANGE_NAMES, strict=True):
            if value.type.size != 1 or value.element is not operands[0].element:
                expected = f"{operands[0].element}[]"
                raise ShapeError(f"operand {name} of Range is one number", expected=expected, found=str(value.type))
        if not delta.reshape(()):
            raise ShapeError("a range of steps of zero", expected="delta other than 0", found=0)
        return (TensorType(operands[0].element, (_range_count(start, limit, delta),)),)

    def reference(self, start: Array, limit: Array, delta: Array) -> Array:
        first, step = (_wide_number(number) for number in (start, delta))
        return np.asarray(first + np.arange(_range_count(start, limit, delta)) * step).astype(start.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        cases = [(3, 9, 3), (10, 4, -2), (0, 5, 1), (5, 0, 1), (-1, -1, 2)]
        typed = [Sample(cls(), _triple(*case, np.int64)) for case in cases]
        others = [Sample(cls(), _triple(1, 6, 2, element.dtype)) for element in sorted(RANGE_ELEMENTS, key=str)]
        return [*typed, *others, Sample(cls(), _triple(0.5, 2.3, 0.25, np.float32))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [
            ErrorSample(cls(), _triple(0, 5, 0, np.int64), "steps of zero"),
            ErrorSample(cls(), (np.array(0), np.array([1, 2]), np.array(1)), "one number"),
            ErrorSample(cls(), _triple(0, math.inf, 1, np.float32), "has no end"),
        ]


_RANGE_NAMES = ("start", "limit", "delta")


def _triple(start: float, limit: float, delta: float, dtype: Any) -> tuple[Array, Array, Array]:
    return np.array(start, dtype), np.array(limit, dtype), np.array(delta, dtype)


def _wide_number(array: Array) -> Any:
    """The element as a number of 64 bits."""
    return array.reshape(()).astype(np.int64 if array.dtype.kind == "i" else np.float64)[()]


def _range_count(start: Array, limit: Array, delta: Array) -> int:
    """Number of elements.

    Raises:
        ShapeError: an operand is infinite or NaN.
        LimitError: there are more than any tensor has.
    """
    first, last, step = (array.reshape(()).item() for array in (start, limit, delta))
    if isinstance(first, int):
        count = int(-((first - last) // step))
    else:
        exact = (last - first) / step
        if not math.isfinite(exact):
            raise ShapeError("the range has no end", expected="finite numbers", found=(first, last, step))
        count = math.ceil(exact)
    if count > LARGEST_EXTENT:
        raise LimitError("an extent is too large", expected=f"at most {LARGEST_EXTENT}", found=count)
    return max(count, 0)


def _positions(builder: Builder, x: Value, axis: int) -> Value:
    """0, 1, 2 ... along an axis of x."""
    end = axis + 1 if axis != -1 else None
    return builder.emit(Iota(), builder.emit(Shape(axis, end), x))


def _rows_and_columns(builder: Builder, x: Value) -> tuple[Value, Value]:
    """Numbers of rows as [N, 1], and of columns as [M], of the matrices in x."""
    return builder.emit(Unsqueeze((1,)), _positions(builder, x, -2)), _positions(builder, x, -1)


@operator
class EyeLike(Operator):
    """Ones on diagonal k of a matrix of x's shape, zeros elsewhere. ONNX EyeLike-22."""

    onnx = "EyeLike-22"
    operands = (Operand("x", ALL),)
    element: ElementType = ElementType.F32
    k: int = 0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if x.rank != 2:
            raise ShapeError("an identity is a matrix", expected="2 axes", found=list(x.shape))
        return (x.type.with_element(self.element),)

    def reference(self, x: Array) -> Array:
        rows, columns = x.shape
        return np.asarray(np.eye(rows, columns, k=self.k)).astype(self.element.dtype)

    def decompose(self, builder: Builder, x: Value) -> Value:
        rows, columns = _rows_and_columns(builder, x)
        diagonal = builder.emit(Add(), rows, scalar(builder, self.k, ElementType.I64))
        return builder.emit(Cast(self.element), builder.emit(Equal(), diagonal, columns))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.zeros((4, 5), np.float32)
        moved = [Sample(cls(k=k), (x,)) for k in (0, 2, -1, 9)]
        return moved + [Sample(cls(element, 1), (x.astype(np.int32),)) for element in sorted(ALL, key=str)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.ones((2, 3, 4), np.float32),), "a matrix")]


@operator
class Trilu(Operator):
    """The upper (or lower) triangle of matrices from diagonal k on, zeros elsewhere. ONNX Trilu-14."""

    onnx = "Trilu-14"
    operands = (Operand("x", ANY), Operand("k", frozenset({ElementType.I64}), optional=True))
    upper: bool = True

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        x, k = (*operands, None)[:2]
        assert x is not None
        if x.rank < 2:
            raise ShapeError("a triangle is part of a matrix", expected="2 or more axes", found=list(x.shape))
        if k is not None and k.type.size != 1:
            raise ShapeError("operand k of Trilu is one number", expected="i64[]", found=str(k.type))
        return (x.type,)

    def reference(self, x: Array, k: Array | None = None) -> Array:
        diagonal = 0 if k is None else int(k.reshape(()))
        rows, columns = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])
        keep = rows + diagonal <= columns if self.upper else columns <= rows + diagonal
        return np.where(keep, x, np.zeros((), x.dtype))

    def decompose(self, builder: Builder, x: Value, k: Value | None = None) -> Value:
        rows, columns = _rows_and_columns(builder, x)
        diagonal = rows if k is None else builder.emit(Add(), rows, k)
        pair = (diagonal, columns) if self.upper else (columns, diagonal)
        keep = builder.emit(LessOrEqual(), *pair)
        return builder.emit(Where(), keep, x, scalar(builder, 0, x.element))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(1, 61, dtype=np.float32).reshape(3, 4, 5)
        moved = [Sample(cls(upper), (x, np.array(k))) for upper in (True, False) for k in (-2, 0, 1, 9)]
        typed = [Sample(cls(False), (x[0].astype(element.dtype),)) for element in sorted(ANY, key=str)]
        return [*moved, *typed, Sample(cls(), (x[:, :0],)), Sample(cls(), (x, np.array([1])))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones(3, np.float32)
        return [
            ErrorSample(cls(), (x,), "part of a matrix"),
            ErrorSample(cls(), (np.ones((2, 3), np.float32), np.array([1, 2])), "one number"),
        ]


@dataclass(frozen=True, eq=False)
class Window(Operator):
    """Base: a sum of cosines over `size` points, of which the period is size or, where not `periodic`, size - 1.

    `coefficients` are those of the cosines of 0, 1, 2 ... periods. Computed in float64.
    """

    operands = (Operand("size", INDICES, host=True),)
    coefficients: ClassVar[tuple[float, ...]] = ()
    element: ElementType = ElementType.F32
    periodic: bool = True

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        size = known_array(operands[0], "size")
        if size.size != 1 or int(size.reshape(())) < 0:
            raise ShapeError("operand size of a window is one number", expected="0 or more", found=size.tolist())
        return (TensorType(self.element, (int(size.reshape(())),)),)

    def reference(self, size: Array) -> Array:
        count = int(size.reshape(()))
        period = max(count if self.periodic else count - 1, 1)  # of one point, any period will do
        angles = np.arange(count) * (2 * math.pi / period)
        terms = [value * np.cos(number * angles) for number, value in enumerate(self.coefficients)]
        return np.asarray(np.sum(terms, axis=0)).astype(self.element.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        plain = [Sample(cls(periodic=flag), (np.array(10, dtype),)) for flag in (True, False) for dtype in _COUNTS]
        typed = [(element, HALF_TOLERANCES.get(element, Sample.tolerance)) for element in sorted(FLOATS, key=str)]
        return [*plain, *(Sample(cls(element), (np.array(7),), tolerance) for element, tolerance in typed)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.array(size),), "one number") for size in (-1, [1, 2])]


_COUNTS = (np.int32, np.int64)


@operator
class HannWindow(Window):
    """1/2 - 1/2 cos. ONNX HannWindow-17."""

    onnx = "HannWindow-17"
    coefficients = (0.5, -0.5)


@operator
class HammingWindow(Window):
    """25/46 - 21/46 cos. ONNX HammingWindow-17."""

    onnx = "HammingWindow-17"
    coefficients = (25 / 46, -21 / 46)


@operator
class BlackmanWindow(Window):
    """0.42 - 0.5 cos + 0.08 cos of the double angle. ONNX BlackmanWindow-17."""

    onnx = "BlackmanWindow-17"
    coefficients = (0.42, -0.5, 0.08)
