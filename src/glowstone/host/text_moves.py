"""Operators that move elements, for tensors of texts; those of numbers are compiled."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from glowstone.errors import ModelError
from glowstone.host.registry import (
    Array,
    HostNode,
    HostValue,
    Kind,
    array_at,
    axis_within,
    fitting,
    indices_at,
    optional_at,
    runs_on_host,
)

for_texts = functools.partial(runs_on_host, texts=True)


def _integers(node: HostNode, operands: Sequence[HostValue], index: int, name: str) -> tuple[int, ...] | None:
    """Integers given as an operand, or in older opsets as an attribute; None where they are left out."""
    if optional_at(operands, index) is None:
        listed: tuple[int, ...] | None = node.attribute(name, Kind.INTEGERS)
        return listed
    return tuple(int(number) for number in indices_at(node, operands, index).reshape(-1))


def _required(node: HostNode, operands: Sequence[HostValue], index: int, name: str) -> tuple[int, ...]:
    numbers = _integers(node, operands, index, name)
    if numbers is None:
        raise ModelError(f"{name} is missing", expected="integers")
    return numbers


@for_texts("Reshape")
def reshape(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, shape = array_at(node, operands, 0), _required(node, operands, 1, "shape")
    keeps = not node.attribute("allowzero", Kind.INTEGER, 0)
    extents = [x.shape[axis] if keeps and not extent and axis < x.ndim else extent for axis, extent in enumerate(shape)]
    return fitting(lambda: x.reshape(extents), x, shape)


@for_texts("Flatten")
def flatten(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, axis = array_at(node, operands, 0), node.attribute("axis", Kind.INTEGER, 1)
    axis = axis if axis == x.ndim else axis_within(axis, x.ndim)
    return x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))


@for_texts("Squeeze")
def squeeze(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, axes = array_at(node, operands, 0), _integers(node, operands, 1, "axes")
    return fitting(lambda: np.squeeze(x, axes), x, axes)


@for_texts("Unsqueeze")
def unsqueeze(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, axes = array_at(node, operands, 0), _required(node, operands, 1, "axes")
    return fitting(lambda: np.expand_dims(x, axes), x, axes)


@for_texts("Transpose")
def transpose(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, permutation = array_at(node, operands, 0), node.attribute("perm", Kind.INTEGERS)
    return fitting(lambda: np.ascontiguousarray(np.transpose(x, permutation)), x, permutation)


@for_texts("Concat")
def concat(node: HostNode, operands: Sequence[HostValue]) -> Array:
    axis = node.required("axis", Kind.INTEGER)
    parts = [array_at(node, operands, index) for index in range(max(1, len(operands)))]
    return fitting(lambda: np.concatenate(parts, axis), parts[0], "joined")


@for_texts("Gather")
def gather(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, indices = array_at(node, operands, 0), indices_at(node, operands, 1)
    axis = node.attribute("axis", Kind.INTEGER, 0)
    return fitting(lambda: np.take(x, indices, axis), x, "an index out of range")


@for_texts("Slice")
def slice_array(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x = array_at(node, operands, 0)
    starts, ends = _required(node, operands, 1, "starts"), _required(node, operands, 2, "ends")
    axes = _integers(node, operands, 3, "axes") or tuple(range(len(starts)))
    steps = _integers(node, operands, 4, "steps") or (1,) * len(starts)

    def cut() -> Array:
        places = [slice(None)] * x.ndim
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            stop = None if step < 0 and end < -x.shape[axis] else end
            places[axis] = slice(start, stop, step)
        return np.ascontiguousarray(x[tuple(places)])

    return fitting(cut, x, f"axes {axes}, starts {starts}, ends {ends}, steps {steps}")


@for_texts("Expand")
def expand(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, shape = array_at(node, operands, 0), _required(node, operands, 1, "shape")
    return fitting(lambda: np.broadcast_to(x, np.broadcast_shapes(x.shape, shape)).copy(), x, shape)


@for_texts("Tile")
def tile(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x, repeats = array_at(node, operands, 0), _required(node, operands, 1, "repeats")
    return fitting(lambda: np.tile(x, repeats), x, repeats)


@for_texts("Where")
def where(node: HostNode, operands: Sequence[HostValue]) -> Array:
    condition, x, y = (array_at(node, operands, index) for index in range(3))
    return fitting(lambda: np.where(condition, x, y), x, "another shape")


@for_texts("Shape")
def shape_of(node: HostNode, operands: Sequence[HostValue]) -> Array:
    x = array_at(node, operands, 0)
    return np.array(x.shape[node.attribute("start", Kind.INTEGER, 0) : node.attribute("end", Kind.INTEGER)], np.int64)


@for_texts("Size")
def size_of(node: HostNode, operands: Sequence[HostValue]) -> Array:
    return np.array(array_at(node, operands, 0).size, np.int64)
