"""Operators that rearrange: shape arithmetic, views, and moves of data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array, known_shape
from glowstone.ops.element_sets import ANY, INDICES, SHAPES
from glowstone.types import (
    CHANNEL_AXIS,
    ElementType,
    TensorType,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
)

Array = np.ndarray[Any, np.dtype[Any]]


def _floats(*shape: int) -> Array:
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


@operator
class Shape(Operator):
    """The extents of x, from axis `start` to before `end`. ONNX Shape-15. Always known to the host."""

    onnx = "Shape-15"
    operands = (Operand("x", ANY),)
    start: int = 0
    end: int | None = None

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        return (TensorType(ElementType.I64, (len(operands[0].shape[self.start : self.end]),)),)

    def reference(self, x: Array) -> Array:
        return np.array(x.shape[self.start : self.end], np.int64)

    def known(self, *operands: Value | None) -> tuple[Array, ...]:
        assert operands[0] is not None
        return (np.array(operands[0].shape[self.start : self.end], np.int64),)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(start, end), (_floats(2, 3, 4),)) for start, end in ((0, None), (1, None), (-2, -1), (5, 9))]


class ReshapeLike(Operator):
    """Base of operators whose result is x's elements in row-major order under another shape."""

    moves_no_data = True

    def target(self, *operands: Value) -> tuple[int, ...]:
        """The shape of the result."""
        raise NotImplementedError

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x = operands[0]
        if x.type.channel_block is not None:
            raise ModelError(f"{self.name} of a blocked value", found=str(x.type))
        return (x.type.with_shape(self.target(*operands)),)


@operator
class Reshape(ReshapeLike):
    """x under another shape; -1 stands for what is left, 0 for x's own extent unless `allow_zero`. ONNX Reshape-14.

    Where x has no elements, -1 is what x's other extents leave, extents of 0 cancelled.
    """

    onnx = "Reshape-14"
    operands = (Operand("x", ANY), Operand("shape", SHAPES, host=True))
    allow_zero: bool = False

    def target(self, *operands: Value) -> tuple[int, ...]:
        x, shape = operands
        extents = [int(extent) for extent in known_array(shape, "shape").ravel()]
        if not self.allow_zero:
            extents = [self._own_extent(x, axis) if extent == 0 else extent for axis, extent in enumerate(extents)]
        if extents.count(-1) > 1 or min(extents, default=0) < -1:
            raise ShapeError("not a shape to reshape to", expected="extents with at most one -1", found=extents)
        result = tuple(_fill_unknown(x.shape, extents))
        if math.prod(result) != x.type.size:
            raise ShapeError(
                "the number of elements changes", expected=f"{x.type.size} elements, as in {x.type}", found=list(result)
            )
        return result

    def _own_extent(self, x: Value, axis: int) -> int:
        if axis >= x.rank:
            raise ShapeError(
                "0 stands for an extent that x does not have", expected=f"rank above {axis}", found=str(x.type)
            )
        return x.shape[axis]

    def reference(self, x: Array, shape: Array) -> Array:
        extents = [int(extent) for extent in shape.ravel()]
        if not self.allow_zero:
            extents = [x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(extents)]
        return x.reshape(tuple(_fill_unknown(x.shape, extents)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(), (_floats(2, 3, 4), np.array(shape, np.int64)))
            for shape in ([6, 4], [0, -1], [-1], [2, 0, 2, 2], [4, 3, 2, 1])
        ] + [
            Sample(cls(True), (_floats(0, 3), np.array([3, 0], np.int64))),
            Sample(cls(), (_floats(1), np.array([], np.int64))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = _floats(2, 3)
        return [
            ErrorSample(cls(), (x, np.array([4])), "number of elements"),
            ErrorSample(cls(), (x, np.array([-1, -1])), "not a shape to reshape to"),
            ErrorSample(cls(), (x, TensorType(ElementType.I64, (2,))), "depends on input data"),
        ]


def _fill_unknown(shape: Sequence[int], extents: list[int]) -> list[int]:
    if -1 not in extents:
        return extents
    total = math.prod(extent for extent in shape if extent)
    rest = math.prod(extent for extent in extents if extent not in (0, -1))
    empty = 0 in shape and 0 not in extents
    fill = 0 if empty else total // rest
    return [fill if extent == -1 else extent for extent in extents]


@operator
class Squeeze(ReshapeLike):
    """x without the axes named (all of extent 1 where None). ONNX Squeeze-13."""

    onnx = "Squeeze-13"
    operands = (Operand("x", ANY),)
    axes: tuple[int, ...] | None = None

    def target(self, *operands: Value) -> tuple[int, ...]:
        return self._target(operands[0].shape)

    def _target(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.axes is None:
            return tuple(extent for extent in shape if extent != 1)
        axes = normalize_axes(self.axes, len(shape))
        for axis in axes:
            if shape[axis] != 1:
                raise ShapeError(
                    "an axis to squeeze has another extent", expected=f"extent 1 on axis {axis}", found=list(shape)
                )
        return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)

    def reference(self, x: Array) -> Array:
        return x.reshape(self._target(x.shape))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = _floats(1, 3, 1, 2)
        return [Sample(cls(axes), (x,)) for axes in (None, (0,), (2,), (0, -2))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((1,)), (_floats(1, 3),), "an axis to squeeze")]


@operator
class Unsqueeze(ReshapeLike):
    """x with axes of extent 1 put in at these places of the result. ONNX Unsqueeze-13."""

    onnx = "Unsqueeze-13"
    operands = (Operand("x", ANY),)
    axes: tuple[int, ...] = (0,)

    def target(self, *operands: Value) -> tuple[int, ...]:
        return self._target(operands[0].shape)

    def _target(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        rank = len(shape) + len(self.axes)
        axes = normalize_axes(self.axes, rank)
        rest = iter(shape)
        return tuple(1 if axis in axes else next(rest) for axis in range(rank))

    def reference(self, x: Array) -> Array:
        return np.asarray(x).reshape(self._target(np.shape(x)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(axes), (_floats(2, 3),)) for axes in ((0,), (1, 3), (-1,), (0, -1))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [
            ErrorSample(cls((4,)), (_floats(2, 3),), "axis out of range"),
            ErrorSample(cls((0, 0)), (_floats(2, 3),), "named twice"),
        ]


@operator
class Flatten(ReshapeLike):
    """A matrix: the axes before `axis` by those from it on. ONNX Flatten-13."""

    onnx = "Flatten-13"
    operands = (Operand("x", ANY),)
    axis: int = 1

    def target(self, *operands: Value) -> tuple[int, ...]:
        return self._target(operands[0].shape)

    def _target(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        rank = len(shape)
        if not -rank <= self.axis <= rank:
            raise ShapeError("axis out of range", expected=f"{-rank} to {rank}", found=self.axis)
        axis = self.axis + rank if self.axis < 0 else self.axis
        return (math.prod(shape[:axis]), math.prod(shape[axis:]))

    def reference(self, x: Array) -> Array:
        return x.reshape(self._target(x.shape))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(axis), (_floats(2, 3, 4),)) for axis in (0, 1, 2, 3, -1)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(4), (_floats(2, 3),), "axis out of range")]


@operator
class Transpose(Operator):
    """Axes in another order: result axis i is x's axis `permutation[i]`. ONNX Transpose-13."""

    onnx = "Transpose-13"
    operands = (Operand("x", ANY),)
    permutation: tuple[int, ...] = ()

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if sorted(self.permutation) != list(range(x.rank)):
            raise ShapeError(
                "not a permutation of the axes",
                expected=f"each of 0 to {x.rank - 1} once",
                found=list(self.permutation),
            )
        return (TensorType(x.element, tuple(x.shape[axis] for axis in self.permutation)),)

    def reference(self, x: Array) -> Array:
        return np.asarray(np.transpose(x, self.permutation), order="C")

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(permutation), (_floats(2, 9, 17),)) for permutation in ((0, 2, 1), (2, 1, 0), (1, 0, 2))] + [
            Sample(cls((2, 0, 3, 1, 4)), (_floats(2, 3, 2, 4, 5),)),
            Sample(cls((1, 0)), (np.arange(6).reshape(2, 3),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((0, 0)), (_floats(2, 3),), "not a permutation")]


@operator
class Concat(Operator):
    """Operands one after another along an axis. ONNX Concat-13."""

    onnx = "Concat-13"
    operands = (Operand("x", ANY, variadic=True),)
    axis: int = 0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        if not operands:
            raise ModelError("Concat of nothing", expected="one operand or more", found=0)
        first = operands[0]
        axis = normalize_axis(self.axis, first.rank)
        for operand in operands[1:]:
            same = operand.rank == first.rank and all(
                mine == theirs
                for place, (mine, theirs) in enumerate(zip(first.shape, operand.shape, strict=False))
                if place != axis
            )
            if not same or operand.element is not first.element:
                raise ShapeError(
                    "operands of Concat differ off its axis",
                    expected=f"{first.type} but on axis {axis}",
                    found=str(operand.type),
                )
            if operand.type.channel_block != first.type.channel_block:
                raise ShapeError("operands have different layouts", found=str(operand.type))
        block = first.type.channel_block
        if block and axis == CHANNEL_AXIS and any(operand.shape[axis] % block for operand in operands[:-1]):
            raise ShapeError("channels inside a block cannot be joined", expected=f"multiples of {block}")
        total = sum(operand.shape[axis] for operand in operands)
        return (first.type.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :])),)

    def reference(self, *operands: Array) -> Array:
        return np.concatenate(operands, axis=self.axis)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        a, b = _floats(2, 3, 4), -_floats(2, 3, 4)
        return [Sample(cls(axis), (a, b, a)) for axis in (0, 1, -1)] + [
            Sample(cls(1), (a, b[:, :0], b[:, :1])),
            Sample(cls(0), (np.array([1, 2]), np.array([3]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(0), (_floats(2, 3), _floats(2, 4)), "differ off its axis")]


@operator
class Slice(Operator):
    """From start to before end, every step-th element, along the axes named. ONNX Slice-13.

    Starts and ends count from the back where negative and are clamped to the axis.
    """

    onnx = "Slice-13"
    operands = (
        Operand("x", ANY),
        Operand("starts", INDICES, host=True),
        Operand("ends", INDICES, host=True),
        Operand("axes", INDICES, optional=True, host=True),
        Operand("steps", INDICES, optional=True, host=True),
    )

    def ranges(self, shape: tuple[int, ...], *host: Array | None) -> tuple[range, ...]:
        """The indices kept along every axis.

        Raises:
            ShapeError: lists of different lengths, a step of 0, an axis out of range or named twice.
        """
        starts, ends, axes, steps = (*host, None, None)[:4]
        assert starts is not None
        assert ends is not None
        count = starts.size
        names = [int(axis) for axis in axes.ravel()] if axes is not None else list(range(count))
        strides = [int(step) for step in steps.ravel()] if steps is not None else [1] * count
        if not len(names) == len(strides) == ends.size == count or count > len(shape):
            raise ShapeError("starts, ends, axes and steps differ in length", found=[count, ends.size, len(names)])
        normalize_axes(names, len(shape))
        result = [range(extent) for extent in shape]
        for start, end, axis, step in zip(starts.ravel(), ends.ravel(), names, strides, strict=True):
            if step == 0:
                raise ShapeError("a step of 0", expected="any other step")
            axis = normalize_axis(axis, len(shape))
            result[axis] = range(shape[axis])[int(start) : int(end) : step]
        return tuple(result)

    def known_ranges(self, *operands: Value | None) -> tuple[range, ...]:
        """`ranges` from the operands of a node."""
        x, *host = operands
        assert x is not None
        names = [operand.name for operand in self.operands[1:]]
        arrays = [
            known_array(value, name) if value is not None else None for value, name in zip(host, names, strict=False)
        ]
        return self.ranges(x.shape, *arrays)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        shape = tuple(len(kept) for kept in self.known_ranges(*operands))
        return (TensorType(operands[0].element, shape),)

    def reference(self, x: Array, *host: Array | None) -> Array:
        return np.asarray(x[np.ix_(*self.ranges(x.shape, *host))])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = _floats(4, 5, 6)

        def case(*lists: list[int]) -> Sample:
            return Sample(cls(), (x, *(np.array(numbers, np.int64) for numbers in lists)))

        return [
            case([1], [3]),
            case([0, 1], [2, 9]),
            case([-3], [-1], [2]),
            case([0, 1], [4, 5], [0, 2], [2, 3]),
            case([5], [0], [2], [-2]),
            case([-1], [-(2**40)], [1], [-1]),
            case([3], [1], [0]),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, one = _floats(2, 3), np.array([1])
        return [
            ErrorSample(cls(), (x, one, np.array([1, 2])), "differ in length"),
            ErrorSample(cls(), (x, one, one, one, np.array([0])), "a step of 0"),
            ErrorSample(cls(), (x, one, TensorType(ElementType.I64, (1,))), "depends on input data"),
        ]


@operator
class Expand(Operator):
    """x broadcast together with a shape. ONNX Expand-13."""

    onnx = "Expand-13"
    operands = (Operand("x", ANY), Operand("shape", SHAPES, host=True))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, shape = operands
        return (TensorType(x.element, broadcast_shapes(x.shape, known_shape(shape, "shape"))),)

    def reference(self, x: Array, shape: Array) -> Array:
        return np.broadcast_to(x, broadcast_shapes(np.shape(x), tuple(int(extent) for extent in shape)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        cases = [((3, 1), [2, 1, 6]), ((1,), [4]), ((), [2, 2]), ((2, 3), [1]), ((3, 1), [3, 4])]
        return [Sample(cls(), (_floats(*shape), np.array(target, np.int64))) for shape, target in cases]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (_floats(2, 3), np.array([2, 4])), "broadcast")]


def unsqueeze(builder: Builder, x: Value, axes: tuple[int, ...]) -> Value:
    """x with axes of extent 1 put in."""
    return builder.emit(Unsqueeze(axes), x)
