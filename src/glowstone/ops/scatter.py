"""Operators that read or write single elements, or rows, at places that data names.

Indices count from the back where negative; one outside its axis is an error at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import ANY, INDICES
from glowstone.types import TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]

REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda _, update: update,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@operator
class GatherElements(Operator):
    """Element i of the result is x's at i, but along the axis at indices[i]. ONNX GatherElements-13."""

    onnx = "GatherElements-13"
    operands = (Operand("x", ANY), Operand("indices", INDICES))
    axis: int = 0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, indices = operands
        axis = _check_elements(self.axis, x, indices)
        if x.shape[axis] == 0 and indices.type.size:
            raise ShapeError("nothing to take elements from", expected="an axis that is not empty", found=str(x.type))
        return (x.type.with_shape(indices.shape),)

    def reference(self, x: Array, indices: Array) -> Array:
        axis = self.axis % x.ndim
        places = _checked(indices, x.shape[axis], self.name)
        return np.asarray(np.take_along_axis(_box(x, indices.shape, axis), places, axis=axis))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        return [
            Sample(cls(1), (x, np.array([[[2, 0, 1, -1]], [[0, 1, 2, -3]]]))),
            Sample(cls(-1), (x, np.arange(12).reshape(2, 3, 2) % 4)),
            Sample(cls(0), (np.arange(5), np.array([4, -5, 2, 2], np.int32))),
            Sample(cls(0), (x > 7, np.array([[[1, 0], [0, 1]]]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(), (x, np.array([0])), "ranks differ"),
            ErrorSample(cls(0), (x, np.zeros((1, 4), np.int64)), "more indices than elements"),
            ErrorSample(cls(1), (x[:, :0], np.zeros((2, 1), np.int64)), "nothing to take elements from"),
        ]


@operator
class GatherND(Operator):
    """Parts of x at tuples of indices, which lie along the last axis of `indices`. ONNX GatherND-13.

    The first `batch_axes` axes are shared by x and indices.
    """

    onnx = "GatherND-13"
    operands = (Operand("x", ANY), Operand("indices", INDICES))
    batch_axes: int = 0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, indices = operands
        batch = self.batch_axes
        if min(x.rank, indices.rank) < 1 or not 0 <= batch < min(x.rank, indices.rank):
            raise ShapeError("batch axes out of range", expected="fewer than the rank of both operands", found=batch)
        if x.shape[:batch] != indices.shape[:batch]:
            raise ShapeError("batches differ", expected=list(x.shape[:batch]), found=list(indices.shape[:batch]))
        depth = indices.shape[-1]
        if batch + depth > x.rank:
            raise ShapeError("more indices in a tuple than axes", expected=f"at most {x.rank - batch}", found=depth)
        shape = (*indices.shape[:-1], *x.shape[batch + depth :])
        if 0 in x.shape[: batch + depth] and 0 not in shape:
            raise ShapeError("nothing to take elements from", expected="axes that are not empty", found=str(x.type))
        return (x.type.with_shape(shape),)

    def reference(self, x: Array, indices: Array) -> Array:
        batch, depth = self.batch_axes, indices.shape[-1]
        places = [_checked(indices[..., axis], x.shape[batch + axis], self.name) for axis in range(depth)]
        grids = np.ogrid[tuple(slice(0, extent) for extent in x.shape[:batch])] if batch else []
        wide = [grid.reshape(*grid.shape, *[1] * (indices.ndim - 1 - batch)) for grid in grids]
        return np.array(x[(*wide, *places)])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        return [
            Sample(cls(), (x, np.array([[0, 2, 1], [1, -1, -4]]))),
            Sample(cls(), (x, np.array([[[1]], [[-2]]]))),
            Sample(cls(1), (x, np.array([[[2], [0]], [[1], [1]]]))),
            Sample(cls(2), (x, np.arange(6).reshape(2, 3, 1) % 4)),
            Sample(cls(), (np.arange(5), np.array([[4], [0]]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(), (x, np.zeros((1, 3), np.int64)), "more indices in a tuple"),
            ErrorSample(cls(1), (x, np.zeros((3, 1), np.int64)), "batches differ"),
            ErrorSample(cls(2), (x, np.zeros((3, 1), np.int64)), "batch axes out of range"),
            ErrorSample(cls(), (x[:0], np.zeros((3, 1), np.int64)), "nothing to take elements from"),
        ]


@operator
class ScatterElements(Operator):
    """x with updates[i] at i, but along the axis at indices[i], in row-major order. ONNX ScatterElements-18.

    `reduction` "none" stores the update; "add", "mul", "max" and "min" combine it with what is there.
    """

    onnx = "ScatterElements-18"
    operands = (Operand("x", ANY), Operand("indices", INDICES), Operand("updates", ANY))
    axis: int = 0
    reduction: str = "none"

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, indices, updates = operands
        _check_reduction(self.reduction, x)
        _check_elements(self.axis, x, indices)
        _check_updates(x, updates, indices.shape)
        return (x.type,)

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        axis = self.axis % x.ndim
        places = _checked(indices, x.shape[axis], self.name)
        result, combine = x.copy(), REDUCTIONS[self.reduction]
        for place in np.ndindex(*indices.shape):
            target = (*place[:axis], int(places[place]), *place[axis + 1 :])
            result[target] = combine(result[target], updates[place])
        return result

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        rows, updates = np.array([[0, 2, 0, -1], [1, 2, 1, 0]]), np.arange(8, dtype=np.float32).reshape(2, 4) - 3
        return [
            Sample(cls(0), (x, np.array([[0, 2, 1, -1]]), updates[:1])),
            Sample(cls(1), (x, np.array([[3, 0], [1, 2]], np.int32), updates[:, :2])),
            *(Sample(cls(0, reduction), (x, rows, updates)) for reduction in ("add", "mul", "max", "min")),
            Sample(cls(-1, "add"), (np.arange(5), np.array([1, 1, -1]), np.array([10, 20, 30]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, zeros = np.ones((2, 3), np.float32), np.zeros((1, 3), np.int64)
        return [
            ErrorSample(cls(), (x, zeros, x), "updates do not fit"),
            ErrorSample(cls(), (x, zeros[0], x[0]), "ranks differ"),
            ErrorSample(cls(0, "sub"), (x, zeros, x[:1]), "not a reduction"),
        ]


@operator
class ScatterND(Operator):
    """x with parts replaced by updates, in order, at tuples of indices along the last axis. ONNX ScatterND-18.

    `reduction` "none" stores the update; "add", "mul", "max" and "min" combine it with what is there.
    """

    onnx = "ScatterND-18"
    operands = (Operand("x", ANY), Operand("indices", INDICES), Operand("updates", ANY))
    reduction: str = "none"

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, indices, updates = operands
        _check_reduction(self.reduction, x)
        if min(x.rank, indices.rank) < 1 or indices.shape[-1] > x.rank:
            raise ShapeError(
                "more indices in a tuple than axes", expected=f"at most {x.rank}", found=list(indices.shape)
            )
        _check_updates(x, updates, (*indices.shape[:-1], *x.shape[indices.shape[-1] :]))
        return (x.type,)

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        places = [_checked(indices[..., axis], x.shape[axis], self.name) for axis in range(indices.shape[-1])]
        result, combine = x.copy(), REDUCTIONS[self.reduction]
        for place in np.ndindex(*indices.shape[:-1]):
            target = tuple(int(axis[place]) for axis in places)
            result[target] = combine(result[target], updates[place])
        return result

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
        rows = -np.arange(18, dtype=np.float32).reshape(3, 3, 2)
        return [
            Sample(cls(), (x, np.array([[2], [-4], [3]]), rows)),
            Sample(cls(), (x, np.array([[0, 2, 1], [3, -1, -2]]), np.array([5, 6], np.float32))),
            *(
                Sample(cls(reduction), (x, np.array([[1], [3], [1]]), rows))
                for reduction in ("add", "mul", "max", "min")
            ),
            Sample(cls(), (np.arange(5), np.array([[[1], [0]]]), np.array([[7, 8]]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(), (x, np.zeros((1, 3), np.int64), x[0, :1]), "more indices in a tuple"),
            ErrorSample(cls(), (x, np.zeros((1, 1), np.int64), x[0]), "updates do not fit"),
            ErrorSample(cls("sub"), (x, np.zeros((1, 1), np.int64), x[:1]), "not a reduction"),
        ]


def _check_reduction(reduction: str, x: Value) -> None:
    if reduction not in REDUCTIONS:
        raise ModelError("not a reduction", expected=", ".join(REDUCTIONS), found=reduction)
    if reduction != "none" and x.element.is_narrow:
        raise ModelError("no reduction of this element type", expected="none", found=f"{reduction} of {x.element}")


def _check_elements(axis: int, x: Value, indices: Value) -> int:
    """The axis counted from the front, of operands that fit each other."""
    if x.rank != indices.rank or x.rank < 1:
        raise ShapeError("ranks differ", expected=f"rank {max(x.rank, 1)}", found=f"{x.type}, {indices.type}")
    axis = normalize_axis(axis, x.rank)
    pairs = enumerate(zip(indices.shape, x.shape, strict=True))
    if any(mine > theirs for place, (mine, theirs) in pairs if place != axis):
        raise ShapeError(
            "more indices than elements", expected=f"at most {list(x.shape)} off axis {axis}", found=list(indices.shape)
        )
    return axis


def _check_updates(x: Value, updates: Value, shape: tuple[int, ...]) -> None:
    expected = x.type.with_shape(shape)
    if updates.type != expected:
        raise ShapeError("updates do not fit x and the indices", expected=str(expected), found=str(updates.type))


def _checked(indices: Array, extent: int, name: str) -> Array:
    """Indices counted from the front.

    Raises:
        ExecutionError: one is outside [-extent, extent).
    """
    bad = (indices < -extent) | (indices >= extent)
    if np.any(bad):
        raise ExecutionError(
            "index out of range",
            operator=name,
            expected=f"{-extent} to {extent - 1}",
            found=int(np.asarray(indices)[bad].flat[0]),
        )
    return np.where(indices < 0, indices + extent, indices)


def _box(x: Array, shape: tuple[int, ...], axis: int) -> Array:
    """x cut to the shape on all axes but one."""
    return x[tuple(slice(None) if place == axis else slice(0, extent) for place, extent in enumerate(shape))]
