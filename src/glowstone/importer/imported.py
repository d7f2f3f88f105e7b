"""What a rule may return besides values: results whose shape only a run shows, and sequences of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from glowstone.graph import Builder, Value
from glowstone.ops import Concat, ReduceProd, Reshape, Slice
from glowstone.ops.constant import constant


@dataclass(frozen=True)
class Counted:
    """A result of as many slices along an axis as `count` (i64[1]) says, from the start of the flat `buffer`.

    `shape` is an i64[rank] that the host knows; its number at the axis means nothing. See `ops/counted.py`.
    """

    buffer: Value
    count: Value
    shape: Value
    axis: int


@dataclass(frozen=True)
class ValueSequence:
    """A sequence whose length is known where the graph is built."""

    items: tuple[Imported, ...]


Imported: TypeAlias = Value | Counted | ValueSequence


def counted(builder: Builder, buffer: Value, count: Value, shape: Value, axis: int) -> Value | Counted:
    """A counted result; a value like any other where the host knows the count."""
    if count.known is None:
        return Counted(buffer, count, shape, axis)
    before, behind = (
        builder.emit(Slice(), shape, *(constant(builder, np.array([number])) for number in bounds))
        for bounds in ((0, axis), (axis + 1, np.iinfo(np.int64).max))
    )
    target = builder.emit(Concat(0), before, count, behind)
    size = builder.emit(ReduceProd((0,), True), target)
    used = builder.emit(Slice(), buffer, constant(builder, np.array([0])), size)
    return builder.emit(Reshape(allow_zero=True), used, target)
