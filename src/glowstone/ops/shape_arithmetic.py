"""Shapes as values: what decompositions use in place of numbers, so that they hold at every shape of a template."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from glowstone.graph import Builder, Value
from glowstone.ops.constant import constant
from glowstone.ops.shape import Concat, Expand, Reshape, Shape, Slice

Extents: TypeAlias = "int | tuple[int, ...] | Value"
"""Part of a shape: one extent, several, or a vector that the host knows."""


def vector(builder: Builder, numbers: tuple[int, ...]) -> Value:
    """A constant vector of int64."""
    return constant(builder, np.asarray(numbers, np.int64))


def extents(builder: Builder, x: Value, start: int = 0, end: int | None = None) -> Value:
    """The extents of x from axis `start` to before `end`, as a vector; a constant where they cannot change."""
    if not x.dynamic:
        return vector(builder, x.shape[start:end])
    return builder.emit(Shape(start, end), x)


def joined(builder: Builder, *parts: Extents) -> Value:
    """The parts of a shape as one vector."""
    values: list[Value] = []
    for part in parts:
        if isinstance(part, Value):
            values.append(part)
        else:
            values.append(vector(builder, part if isinstance(part, tuple) else (part,)))
    return values[0] if len(values) == 1 else builder.emit(Concat(0), *values)


def reshaped(builder: Builder, x: Value, *parts: Extents) -> Value:
    """x under another shape; one extent may be -1."""
    return builder.emit(Reshape(True), x, joined(builder, *parts))


def stretched(builder: Builder, x: Value, *parts: Extents) -> Value:
    """x broadcast together with a shape."""
    return builder.emit(Expand(), x, joined(builder, *parts))


def sliced(builder: Builder, x: Value, axis: int, start: Extents, end: Extents, step: int = 1) -> Value:
    """x from `start` to before `end` along one axis."""
    bounds = (joined(builder, start), joined(builder, end), vector(builder, (axis,)))
    steps = () if step == 1 else (vector(builder, (step,)),)
    return builder.emit(Slice(), x, *bounds, *steps)
