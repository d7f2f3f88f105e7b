"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS, HALVES, POOLED
from glowstone.ops.reduction import ReduceMean
from glowstone.ops.widening import in_float32
from glowstone.ops.window import Window
from glowstone.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]


class Pooling(Operator):
    """Base of the window poolings: x [N, C, spatial]."""

    operands = (Operand("x", FLOATS),)
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    padding: str
    ceil_mode: bool

    @property
    def window(self) -> Window:
        return Window(self.kernel, self.strides, self.dilations, self.pads, self.padding, self.ceil_mode)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if x.rank < 3:
            raise ShapeError("x has no spatial axes", expected="rank 3 or more", found=str(x.type))
        self.window.check(x.rank - 2)
        return (x.type.with_shape((*x.shape[:2], *self.window.output_extents(x.shape[2:]))),)

    def known(self, *operands: Value | None) -> None:
        """No shape hangs on window arithmetic over data."""

    def decompose(self, builder: Builder, *operands: Value) -> Value | tuple[Value, ...] | None:
        """Floats of 16 bits are combined as float32 and rounded once."""
        (x,) = operands
        if x.element not in HALVES:
            return None
        return in_float32(builder, self, x)

    def _windows(self, x: Array, fill: float) -> Array:
        """Every window's elements on a last axis, in float64, `fill` where the window leaves x."""
        window = self.window
        count = x.ndim - 2
        before = window.resolved_pads(x.shape[2:])[:count]
        spatial = window.output_extents(x.shape[2:])
        return _gather_windows(
            window, np.pad(x.astype(np.float64), _widths(window, x, before), constant_values=fill), spatial
        )


def _widths(window: Window, x: Array, before: Sequence[int]) -> list[tuple[int, int]]:
    """Padding that makes room for every window, ceil mode included."""
    spatial = window.output_extents(x.shape[2:])
    ends = [
        max((extent - 1) * stride + reach - size - pad, 0)
        for extent, stride, reach, size, pad in zip(
            spatial, window.strides, window.reach, x.shape[2:], before, strict=True
        )
    ]
    return [(0, 0), (0, 0), *zip(before, ends, strict=True)]


def _gather_windows(window: Window, padded: Array, spatial: Sequence[int]) -> Array:
    columns = []
    for position in np.ndindex(*window.kernel):
        slices = tuple(
            slice(k * dilation, k * dilation + (extent - 1) * stride + 1, stride) if extent else slice(0, 0)
            for k, dilation, extent, stride in zip(position, window.dilations, spatial, window.strides, strict=True)
        )
        columns.append(padded[(slice(None), slice(None), *slices)])
    return np.stack(columns, axis=-1)


@operator
class MaxPool(Pooling):
    """Largest element of each window. ONNX MaxPool-12 (first result)."""

    onnx = "MaxPool-12"
    operands = (Operand("x", POOLED),)
    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    padding: str = "explicit"
    ceil_mode: bool = False

    def reference(self, x: Array) -> Array:
        return np.asarray(self._windows(x, -np.inf).max(axis=-1)).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(6)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls((3, 3), (2, 2), pads=(1, 1, 1, 1)), (normal(1, 10, 9, 8),)),
            Sample(cls((2, 2), (2, 2), ceil_mode=True), (normal(2, 3, 5, 5),)),
            Sample(cls((2, 2), (1, 1), (2, 2)), (normal(1, 8, 6, 6),)),
            Sample(cls((3,), (2,), (1,), (1, 1)), (normal(1, 4, 9),)),
            Sample(cls((3, 2), (2, 2), padding="same_lower"), (normal(1, 8, 6, 7),)),
            Sample(cls((2, 2), (1, 1)), ((40 * normal(1, 3, 5, 4)).astype(np.int8),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((3, 3)), (np.ones((1, 1, 2, 2), np.float32),), "larger than the padded input")]


@operator
class AveragePool(Pooling):
    """Mean of each window over elements of x, and over its padding where `count_include_pad`. ONNX AveragePool-19."""

    onnx = "AveragePool-19"
    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    padding: str = "explicit"
    ceil_mode: bool = False
    count_include_pad: bool = False

    def reference(self, x: Array) -> Array:
        sums = self._windows(x, 0.0).sum(axis=-1)
        counts = self._counted(x).sum(axis=-1)
        return np.asarray(sums / np.maximum(counts, 1)).astype(x.dtype)

    def _counted(self, x: Array) -> Array:
        """1 for every position of a window that the mean divides by, else 0."""
        ones = np.ones((1, 1, *x.shape[2:]))
        if not self.count_include_pad:
            return self._windows(ones, 0.0)
        window = self.window
        count = x.ndim - 2
        pads = window.resolved_pads(x.shape[2:])
        room = np.pad(ones, [(0, 0), (0, 0), *zip(pads[:count], pads[count:], strict=True)], constant_values=1.0)
        widths = _widths(window, ones, pads[:count])
        extra = [
            (0, max(before + size + after - padded, 0))
            for (before, after), size, padded in zip(widths, ones.shape, room.shape, strict=True)
        ]
        return _gather_windows(window, np.pad(room, extra), window.output_extents(x.shape[2:]))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(7)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls((3, 2), (3, 2)), (normal(1, 10, 9, 8),)),
            Sample(cls((3, 3), (2, 2), pads=(1, 1, 1, 1)), (normal(1, 8, 7, 7),)),
            Sample(cls((3, 3), (2, 2), pads=(1, 1, 1, 1), count_include_pad=True), (normal(1, 8, 7, 7),)),
            Sample(
                cls((3, 3), (2, 2), ceil_mode=True, pads=(1, 0, 1, 0), count_include_pad=True), (normal(1, 2, 6, 6),)
            ),
            Sample(cls((4,), (2,), (1,), (1, 2)), (normal(1, 4, 9),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((3, 3)), (np.ones((1, 1, 2, 2), np.float32),), "larger than the padded input")]


@operator
class GlobalAveragePool(Operator):
    """Mean over all spatial axes, kept as extent 1. ONNX GlobalAveragePool-1."""

    onnx = "GlobalAveragePool-1"
    operands = (Operand("x", FLOATS),)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if x.rank < 3:
            raise ShapeError("x has no spatial axes", expected="rank 3 or more", found=str(x.type))
        return (x.type.with_shape((*x.shape[:2], *[1] * (x.rank - 2))),)

    def reference(self, x: Array) -> Array:
        mean = ReduceMean(tuple(range(2, x.ndim)), True)
        return np.asarray(mean.reference(x))

    def decompose(self, builder: Builder, x: Value) -> Value:
        return builder.emit(ReduceMean(tuple(range(2, x.rank)), True), x)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(8)
        return [
            Sample(cls(), (random.standard_normal(shape).astype(np.float32),)) for shape in ((1, 20, 7, 7), (2, 3, 5))
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.ones((2, 3), np.float32),), "no spatial axes")]
