"""Sequences of different lengths, each reversed within itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.arithmetic import Minimum
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import ANY, INDICES
from glowstone.ops.elementwise import Add, Cast, Less, Mul, Sub, Where
from glowstone.ops.indexing import Gather
from glowstone.ops.iota import Iota
from glowstone.ops.shape import Transpose, unsqueeze
from glowstone.ops.shape_arithmetic import extents, joined, reshaped
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class ReverseSequence(Operator):
    """Of every sequence the first `lengths[b]` steps in reverse order. ONNX ReverseSequence-10.

    The others stay. One of `time_axis` and `batch_axis` is 0, the other 1.
    """

    onnx = "ReverseSequence-10"
    operands = (Operand("x", ANY), Operand("lengths", INDICES))
    time_axis: int = 0
    batch_axis: int = 1

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, lengths = operands
        if {self.time_axis, self.batch_axis} != {0, 1} or x.rank < 2:
            raise ShapeError(
                "not axes of steps and batch", expected="axes 0 and 1", found=f"{self.time_axis}, {self.batch_axis}"
            )
        if lengths.shape != (x.shape[self.batch_axis],):
            raise ShapeError(
                "lengths are one per sequence", expected=[x.shape[self.batch_axis]], found=str(lengths.type)
            )
        return (x.type,)

    def reference(self, x: Array, lengths: Array) -> Array:
        result = np.moveaxis(x.copy(), self.time_axis, 0)
        if lengths.max(initial=0) > len(result) or lengths.min(initial=0) < 0:
            raise ExecutionError("a length is out of range", expected=f"0 to {len(result)}", found=lengths.tolist())
        for sequence, length in enumerate(lengths):
            result[:length, sequence] = result[:length, sequence][::-1]
        return np.moveaxis(result, 0, self.time_axis)

    def decompose(self, builder: Builder, x: Value, lengths: Value) -> Value:
        """Rows (step, sequence) gathered from where the lengths say."""
        order = (self.time_axis, self.batch_axis, *range(2, x.rank))
        swaps = self.time_axis != 0
        first = builder.emit(Transpose(order), x) if swaps else x
        flat = reshaped(builder, first, -1, *self._rest(builder, first))
        rows = builder.emit(Gather(), flat, self._rows(builder, first, lengths))
        return builder.emit(Transpose(order), rows) if swaps else rows

    @staticmethod
    def _rest(builder: Builder, x: Value) -> tuple[Value, ...]:
        """The extents of one row."""
        return (extents(builder, x, 2),) if x.rank > 2 else ()

    @staticmethod
    def _rows(builder: Builder, x: Value, lengths: Value) -> Value:
        """[steps, batch]: the number of the row that belongs there; none that exists where a length is out of range."""
        steps, batch = (builder.emit(Iota(), joined(builder, extents(builder, x, axis, axis + 1))) for axis in (0, 1))
        steps = unsqueeze(builder, steps, (1,))
        zero, one = (scalar(builder, number, ElementType.I64) for number in (0, 1))
        beyond = builder.emit(Add(), extents(builder, x, 0, 1), one)
        given = builder.emit(Cast(ElementType.I64), lengths)
        bounded = builder.emit(Minimum(), given, beyond)  # so that the products below do not wrap
        counts = builder.emit(Where(), builder.emit(Less(), given, zero), beyond, bounded)
        last = builder.emit(Sub(), counts, one)
        source = builder.emit(Where(), builder.emit(Less(), steps, counts), builder.emit(Sub(), last, steps), steps)
        return builder.emit(Add(), builder.emit(Mul(), source, extents(builder, x, 1, 2)), batch)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
        return [
            Sample(cls(), (x, np.array([4, 1, 3]))),
            Sample(cls(1, 0), (x, np.array([1, 3, 2, 3]))),
            Sample(cls(1, 0), (x[:, :, 0], np.array([2, 2, 2, 1]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(), (x, np.array([1, 2])), "one per sequence"),
            ErrorSample(cls(0, 2), (x, np.array([1, 2])), "not axes of steps and batch"),
        ]
