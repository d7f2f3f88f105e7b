"""Operators that find elements by their order. NaN counts as larger than every number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import NUMBERS, SHAPES
from glowstone.types import ElementType, TensorType, is_float_dtype, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class ArgExtremum(Operator):
    """Base: the position of the extremum along an axis, the first one unless `last`; a NaN is it where there is one.

    The axis stays with extent 1 where `keep`. `mode` names the low-level operation's.
    """

    operands = (Operand("x", NUMBERS),)
    mode: ClassVar[str] = ""
    axis: int = 0
    keep: bool = True
    last: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        axis = normalize_axis(self.axis, x.rank)
        if x.shape[axis] == 0:
            raise ShapeError("an extremum of nothing", expected=f"elements along axis {axis}", found=str(x.type))
        kept = (1,) if self.keep else ()
        return (TensorType(ElementType.I64, (*x.shape[:axis], *kept, *x.shape[axis + 1 :])),)

    def reference(self, x: Array) -> Array:
        find = np.argmax if self.mode == "max" else np.argmin
        if self.last:
            found = x.shape[self.axis] - 1 - find(np.flip(x, self.axis), axis=self.axis)
        else:
            found = find(x, axis=self.axis)
        return np.asarray(np.expand_dims(found, self.axis) if self.keep else found)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(12).integers(-3, 4, (3, 4, 5)).astype(np.float32)
        cases = [(0, True, False), (1, False, False), (-1, True, True), (2, False, False), (0, False, True)]
        elements = NUMBERS - {ElementType.F32}
        return [
            *(Sample(cls(*case), (x,)) for case in cases),
            Sample(cls(1), (x[:0],)),
            *element_samples(cls(1), elements, np.abs(x[0])),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 0), np.float32)
        return [ErrorSample(cls(2), (x,), "axis out of range"), ErrorSample(cls(1), (x,), "an extremum of nothing")]


@operator
class ArgMax(ArgExtremum):
    """Position of the largest element along an axis. ONNX ArgMax-13."""

    onnx = "ArgMax-13"
    mode = "max"


@operator
class ArgMin(ArgExtremum):
    """Position of the smallest element along an axis. ONNX ArgMin-13."""

    onnx = "ArgMin-13"
    mode = "min"


@operator
class TopK(Operator):
    """The k largest (or smallest) elements along an axis in order, and their positions. ONNX TopK-11.

    Of equal elements the first in x comes first.
    """

    onnx = "TopK-11"
    operands = (Operand("x", NUMBERS), Operand("k", SHAPES, host=True))
    result_names = ("values", "indices")
    axis: int = -1
    largest: bool = True

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, k = operands
        axis = normalize_axis(self.axis, x.rank)
        count = known_array(k, "k")
        if count.size != 1 or not 0 <= int(count.reshape(())) <= x.shape[axis]:
            raise ShapeError("k does not fit the axis", expected=f"0 to {x.shape[axis]}", found=count.tolist())
        shape = (*x.shape[:axis], int(count.reshape(())), *x.shape[axis + 1 :])
        return (TensorType(x.element, shape), TensorType(ElementType.I64, shape))

    def reference(self, x: Array, k: Array) -> tuple[Array, Array]:
        keys = x.astype(np.float64) if is_float_dtype(x.dtype) else x
        if self.largest:  # equal elements last to first, so that flipping brings them in order
            backwards = np.argsort(np.flip(keys, self.axis), axis=self.axis, kind="stable")
            order = x.shape[self.axis] - 1 - np.flip(backwards, self.axis)
        else:
            order = np.argsort(keys, axis=self.axis, kind="stable")
        indices = np.take(order, range(int(k.reshape(()))), axis=self.axis)
        return np.take_along_axis(x, indices, axis=self.axis), indices

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(13).integers(-9, 10, (3, 40, 5)).astype(np.float32)
        cases = [(1, True, 3), (1, False, 20), (-1, True, 5), (0, False, 1), (2, True, 0)]
        elements = NUMBERS - {ElementType.F32}
        return [
            *(Sample(cls(axis, largest), (x, np.array([k]))) for axis, largest, k in cases),
            *element_samples(cls(1), elements, np.abs(x[0].T), fixed=(np.array([3]),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(), (x, np.array([4])), "k does not fit"),
            ErrorSample(cls(2), (x, np.array([1])), "axis out of range"),
            ErrorSample(cls(), (x, TensorType(ElementType.I64, (1,))), "depends on input data"),
        ]
