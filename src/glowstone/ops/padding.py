"""Padding with a constant, or with elements of the operand itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array
from glowstone.ops.element_sets import ANY, INDICES, SHAPES
from glowstone.ops.rearrangement import padded
from glowstone.support.budget import budget
from glowstone.types import ElementType, TensorType, normalize_axes, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]
Extents = tuple[int, ...]

MODES = ("constant", "reflect", "edge", "wrap")


@operator
class Pad(Operator):
    """x with elements put before and after its axes; negative numbers take away. ONNX Pad-19.

    `pads` lists all beginnings, then all ends, of the axes named (all where left out). The elements are `value`
    (0 where left out), or x's own: mirrored without the border, the border, or from the other end.
    """

    onnx = "Pad-19"
    operands = (
        Operand("x", ANY),
        Operand("pads", SHAPES, host=True),
        Operand("value", ANY, optional=True),
        Operand("axes", INDICES, optional=True, host=True),
    )
    mode: str = "constant"

    def margins(self, rank: int, pads: Array, axes: Array | None) -> tuple[Extents, Extents]:
        """Elements before and after every axis.

        Raises:
            ShapeError: pads and axes that do not fit each other or the rank.
        """
        names = [int(axis) for axis in axes.ravel()] if axes is not None else list(range(rank))
        normalize_axes(names, rank)
        if pads.size != 2 * len(names):
            raise ShapeError("pads is two numbers for each axis", expected=f"{2 * len(names)} numbers", found=pads.size)
        before, after = [0] * rank, [0] * rank
        for number, name in enumerate(names):
            axis = normalize_axis(name, rank)
            before[axis], after[axis] = int(pads.ravel()[number]), int(pads.ravel()[number + len(names)])
        return tuple(before), tuple(after)

    def known_margins(self, *operands: Value | None) -> tuple[Extents, Extents]:
        """`margins` from the operands of a node."""
        x, pads, _, axes = (*operands, None, None)[:4]
        assert x is not None
        assert pads is not None
        return self.margins(x.rank, known_array(pads, "pads"), None if axes is None else known_array(axes, "axes"))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x = operands[0]
        if self.mode not in MODES:
            raise ModelError("not a mode of padding", expected=", ".join(MODES), found=self.mode)
        value = operands[2] if len(operands) > 2 else None
        if value is not None and (value.element is not x.element or value.type.size != 1):
            raise ModelError("value is one element of x's type", expected=f"{x.element}[]", found=str(value.type))
        before, after = self.known_margins(*operands)
        shape = tuple(sum(extents) for extents in zip(before, x.shape, after, strict=True))
        if min(shape, default=0) < 0:
            raise ShapeError("more elements are taken away than there are", found=f"{list(before)}, {list(after)}")
        if self.mode != "constant":
            for axis in range(x.rank):
                _kept(x.shape[axis], before[axis], after[axis])
        return (TensorType(x.element, shape),)

    def reference(self, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None) -> Array:
        before, after = self.margins(x.ndim, pads, axes)
        if self.mode == "constant":
            return padded(x, before, after, None if value is None else np.asarray(value).reshape(()))
        for axis, margins in enumerate(zip(before, after, strict=True)):
            x = np.take(x, source_indices(self.mode, x.shape[axis], *margins), axis=axis)
        return x

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

        def pads(*numbers: int) -> Array:
            return np.array(numbers, np.int64)

        return [
            Sample(cls(), (x, pads(0, 1, 2, 0, 3, 1))),
            Sample(cls(), (x, pads(1, 0, 0, 0, 0, 2), np.array(-1.5, np.float32))),
            Sample(cls(), (x, pads(0, -1, 2, 0, 1, -3))),
            Sample(cls(), (x, pads(1, 2), np.array(7, np.float32), pads(-1))),
            Sample(cls("reflect"), (x, pads(0, 2, 1, 0, 1, 3))),
            Sample(cls("edge"), (x, pads(1, 0, 2, 2, 3, 0))),
            Sample(cls("wrap"), (x, pads(0, 1, 3, 0, 2, 1))),
            Sample(cls(), (np.arange(3), pads(1, 1))),
            Sample(cls(), (x[:, :0], pads(0, 1, 0, 0, 1, 0))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(), (x, np.array([1, 1])), "two numbers for each axis"),
            ErrorSample(cls(), (x, np.array([-3, 0, 0, 0])), "more elements are taken away"),
            ErrorSample(cls("mirror"), (x, np.array([0, 0, 0, 0])), "not a mode of padding"),
            ErrorSample(cls(), (x, np.array([0, 0, 0, 0]), np.array(1)), "one element of x's type"),
            ErrorSample(cls("edge"), (x[:, :0], np.array([0, 1, 0, 0])), "nothing to take elements from"),
            ErrorSample(cls(), (x, TensorType(ElementType.I64, (4,))), "depends on input data"),
        ]


def source_indices(mode: str, extent: int, before: int, after: int) -> Array:
    """For every place along a padded axis the index in x that it shows.

    Raises:
        ShapeError: the axis is empty and elements are asked for.
    """
    kept = _kept(extent, before, after)
    widths = (max(before, 0), max(after, 0))
    budget().take_bytes((len(kept) + sum(widths)) * np.dtype(np.int64).itemsize, "places along a padded axis")
    names: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    places = np.array(kept, np.int64)
    return np.pad(places, widths, mode=names[mode]) if max(widths) else places


def _kept(extent: int, before: int, after: int) -> range:
    """The places of an axis that negative margins leave.

    Raises:
        ShapeError: there are none, and elements are asked for.
    """
    kept = range(extent)[max(-before, 0) : max(extent - max(-after, 0), 0)]
    if not kept and max(before, after) > 0:
        raise ShapeError("nothing to take elements from", expected="an axis that is not empty", found=extent)
    return kept
