"""Shape rules shared by every operator: multidirectional broadcasting, axes."""

from __future__ import annotations

from collections.abc import Iterable

from glowstone.errors import ShapeError
from glowstone.types.tensor_type import Shape


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape under NumPy's (and ONNX's multidirectional) broadcasting.

    Raises:
        ShapeError: two extents differ and neither is 1.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate(shape, rank - len(shape)):
            if result[axis] == 1:
                result[axis] = extent
            elif extent not in (1, result[axis]):
                raise ShapeError(
                    "operands cannot be broadcast together",
                    expected=f"extent 1 or {result[axis]} on axis {axis}",
                    found=", ".join(str(list(shape)) for shape in shapes),
                )
    return tuple(result)


def normalize_axis(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        ShapeError: the axis is outside [-rank, rank).
    """
    if not -rank <= axis < rank:
        raise ShapeError("axis out of range", expected=f"{-rank} to {rank - 1}", found=axis)
    return axis % rank


def normalize_axes(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Sorted distinct axes counted from the front.

    Raises:
        ShapeError: an axis is out of range or named twice.
    """
    normal = sorted(normalize_axis(int(axis), rank) for axis in axes)
    if len(set(normal)) != len(normal):
        raise ShapeError("an axis is named twice", found=tuple(normal))
    return tuple(normal)


def row_major_strides(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of a contiguous row-major array."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)
