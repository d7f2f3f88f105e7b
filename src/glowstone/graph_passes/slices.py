"""Slices along one axis whose bounds hold at every shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowstone.graph import Builder, Value
from glowstone.graph.operator import Array
from glowstone.ops import Slice
from glowstone.ops.constant import constant, constant_array
from glowstone.types import normalize_axis


@dataclass(frozen=True)
class Bounds:
    """From `start` to before `end`, one by one, neither counted from the back; both are clamped to the extent."""

    start: int
    end: int


def constant_lists(value: Value | None) -> tuple[list[int], list[int], list[int], list[int]] | None:
    """(starts, ends, axes, steps) of a slice, where all are constants; axes count from the front."""
    if value is None or value.node is None or not isinstance(value.operator, Slice):
        return None
    x, *lists = (*value.node.operands, None, None)[:5]
    assert x is not None
    starts, ends, axes, steps = (constant_array(operand) for operand in lists)
    given_axes, given_steps = lists[2], lists[3]
    if starts is None or ends is None:
        return None
    if (given_axes is not None and axes is None) or (given_steps is not None and steps is None):
        return None
    count = starts.size
    names = list(range(count)) if axes is None else [normalize_axis(int(axis), x.rank) for axis in axes.ravel()]
    return _numbers(starts), _numbers(ends), names, [1] * count if steps is None else _numbers(steps)


def _numbers(array: Array) -> list[int]:
    return [int(number) for number in array.ravel()]


def bounds_of(value: Value | None, axis: int) -> Bounds | None:
    """The bounds of a slice along this axis alone."""
    lists = constant_lists(value)
    if lists is None:
        return None
    starts, ends, axes, steps = lists
    if axes != [axis] or steps != [1] or not 0 <= starts[0] <= ends[0]:
        return None
    return Bounds(starts[0], ends[0])


def emit_slice(builder: Builder, x: Value, axis: int, bounds: Bounds) -> Value:
    """x between the bounds along one axis."""
    lists = (np.array([number], np.int64) for number in (bounds.start, bounds.end, axis))
    return builder.emit(Slice(), x, *(constant(builder, numbers) for numbers in lists))
