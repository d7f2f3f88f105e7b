"""The logarithm of the softmax, and its limit: one at the first maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS, HALVES
from glowstone.ops.elementwise import HALF_TOLERANCES, Cast, Equal, Exp, Log, Sub
from glowstone.ops.iota import Iota
from glowstone.ops.reduction import ReduceMax, ReduceSum
from glowstone.ops.selection import ArgMax
from glowstone.ops.shape import Shape, unsqueeze
from glowstone.types import ElementType, TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


class AlongAxis(Operator):
    """Base: the result has x's type; `axis` is one of its axes."""

    operands = (Operand("x", FLOATS),)
    axis: int = -1

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        normalize_axis(self.axis, operands[0].rank)
        return (operands[0].type,)

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(_with_axis(cls, 2), (np.ones((2, 3), np.float32),), "axis out of range")]


def _with_axis(kind: Any, axis: int) -> Operator:
    made: Operator = kind(axis)
    return made


@operator
class LogSoftmax(AlongAxis):
    """x - max - log of the sum of e^(x - max), along one axis. ONNX LogSoftmax-13.

    16-bit floats are computed in float32.
    """

    onnx = "LogSoftmax-13"
    axis: int = -1

    def reference(self, x: Array) -> Array:
        if x.size == 0:
            return x
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            wide = wide - wide.max(axis=self.axis, keepdims=True)
            return np.asarray(wide - np.log(np.exp(wide).sum(axis=self.axis, keepdims=True))).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value) -> Value:
        axes = (normalize_axis(self.axis, x.rank),)
        wide = builder.emit(Cast(ElementType.F32), x) if x.element in HALVES else x
        moved = builder.emit(Sub(), wide, builder.emit(ReduceMax(axes), wide))
        total = builder.emit(ReduceSum(axes), builder.emit(Exp(), moved))
        result = builder.emit(Sub(), moved, builder.emit(Log(), total))
        return builder.emit(Cast(x.element), result) if x.element in HALVES else result

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(10).uniform(-5, 5, (2, 3, 17)).astype(np.float32)
        typed = [Sample(cls(), _typed(x, element), HALF_TOLERANCES.get(element, 1e-5)) for element in _ELEMENTS]
        return [*typed, Sample(cls(0), (x,)), Sample(cls(1), (x * 8,)), Sample(cls(), (x[:0],))]


@operator
class Hardmax(AlongAxis):
    """1 at the first maximum along an axis, 0 elsewhere. ONNX Hardmax-13."""

    onnx = "Hardmax-13"
    axis: int = -1

    def reference(self, x: Array) -> Array:
        if x.size == 0:
            return x
        axis = normalize_axis(self.axis, x.ndim)
        positions = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis))
        return np.asarray(positions == np.expand_dims(np.argmax(x, axis), axis)).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value) -> Value:
        axis = normalize_axis(self.axis, x.rank)
        positions = builder.emit(Iota(), builder.emit(Shape(axis, axis + 1), x))
        behind = tuple(range(1, x.rank - axis))
        positions = unsqueeze(builder, positions, behind) if behind else positions
        found = builder.emit(Equal(), positions, builder.emit(ArgMax(axis), x))
        return builder.emit(Cast(x.element), found)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(10).integers(-3, 4, (2, 3, 17)).astype(np.float32)
        typed = [Sample(cls(), _typed(x, element)) for element in _ELEMENTS]
        return [*typed, Sample(cls(0), (x,)), Sample(cls(1), (x,)), Sample(cls(), (x[:0],))]


_ELEMENTS = sorted(FLOATS, key=str)


def _typed(x: Array, element: ElementType) -> tuple[Array]:
    return (x.astype(element.dtype),)
