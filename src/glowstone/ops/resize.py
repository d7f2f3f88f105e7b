"""Resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array
from glowstone.ops.element_sets import ALL, FLOATS, SHAPES
from glowstone.ops.resize_tables import (
    COORDINATE_MODES,
    CROPPING,
    MODES,
    NEAREST_MODES,
    AxisResize,
    Interpolation,
    Taps,
)
from glowstone.types import LARGEST_EXTENT, ElementType, TensorType, normalize_axes, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]

POLICIES = ("stretch", "not_larger", "not_smaller")


@operator
class Resize(Operator):
    """x resampled along its axes to scaled extents, or to sizes given. ONNX Resize-19.

    `axes` are those that scales, sizes and region (begins, then ends, as parts of the extent) speak of; all where None.
    Each axis is resampled by itself: the nearest element, or a weighted sum of neighbours; see `resize_tables`.
    """

    onnx = "Resize-19"
    operands = (
        Operand("x", ALL),
        Operand("region", FLOATS, optional=True, host=True),
        Operand("scales", frozenset({ElementType.F32}), optional=True, host=True),
        Operand("sizes", SHAPES, optional=True, host=True),
    )
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0
    policy: str = "stretch"
    axes: tuple[int, ...] | None = None

    @property
    def interpolation(self) -> Interpolation:
        return Interpolation(
            self.mode, self.coordinates, self.nearest, self.cubic, self.antialias, self.exclude_outside
        )

    def resized_axes(
        self, shape: tuple[int, ...], region: Array | None, scales: Array | None, sizes: Array | None
    ) -> tuple[AxisResize, ...]:
        """What happens to every axis.

        Raises:
            ShapeError: lists that do not fit the axes, a scale that is not positive, or an empty axis that grows.
        """
        named = tuple(range(len(shape))) if self.axes is None else self.axes
        normalize_axes(named, len(shape))
        axes = [normalize_axis(axis, len(shape)) for axis in named]
        region, scales, sizes = (
            None if list_ is None or not list_.size else list_ for list_ in (region, scales, sizes)
        )
        if (scales is None) == (sizes is None):
            raise ShapeError("either scales or sizes decide", expected="one of the two")
        for numbers, count in ((scales, len(axes)), (sizes, len(axes)), (region, 2 * len(axes))):
            if numbers is not None and numbers.size != count:
                raise ShapeError("not one number for each axis", expected=f"{count} numbers", found=numbers.tolist())
        result = [AxisResize(extent, extent, np.float64(1)) for extent in shape]
        extents = tuple(shape[axis] for axis in axes)
        for number, (axis, (size, scale)) in enumerate(
            zip(axes, self._sizes_and_scales(extents, scales, sizes), strict=True)
        ):
            part = (0.0, 1.0) if region is None else (float(region[number]), float(region[number + len(axes)]))
            if shape[axis] == 0 and size > 0:
                raise ShapeError("an empty axis cannot grow", expected=0, found=size)
            result[axis] = AxisResize(shape[axis], size, scale, part)
        return tuple(result)

    def _sizes_and_scales(
        self, extents: tuple[int, ...], scales: Array | None, sizes: Array | None
    ) -> list[tuple[int, Any]]:
        """Extent and scale of every axis named."""
        if scales is not None:
            factors = scales.ravel().astype(np.float32)
            if not ((factors > 0) & (factors.astype(np.float64) * max(extents, default=0) < LARGEST_EXTENT)).all():
                raise ShapeError("a scale is out of range", expected="positive numbers", found=scales.tolist())
            return [(int(np.floor(factor * extent)), factor) for factor, extent in zip(factors, extents, strict=True)]
        assert sizes is not None
        wanted = [int(size) for size in sizes.ravel()]
        if min(wanted, default=0) < 0:
            raise ShapeError("a size is negative", found=wanted)
        ratios = [np.float64(size / extent if extent else 1) for size, extent in zip(wanted, extents, strict=True)]
        if self.policy == "stretch" or not ratios:
            return list(zip(wanted, ratios, strict=True))
        ratio = min(ratios) if self.policy == "not_larger" else max(ratios)
        return [(int(ratio * extent + 0.5), ratio) for extent in extents]

    def known_axes(self, *operands: Value | None) -> tuple[AxisResize, ...]:
        """`resized_axes` from the operands of a node."""
        x, *lists = operands
        assert x is not None
        names = ("region", "scales", "sizes")
        arrays = [
            known_array(value, name) if value is not None else None for value, name in zip(lists, names, strict=False)
        ]
        region, scales, sizes = (*arrays, None, None, None)[:3]
        if self.coordinates != CROPPING:
            region = None
        return self.resized_axes(x.shape, region, scales, sizes)

    def keeps_axis(self, axis: int, *operands: Value | None) -> bool:
        """Whether an axis stays as it is, and no result lies outside of x."""
        resized = self.known_axes(*operands)[axis]
        return self.coordinates != CROPPING and resized.result == resized.extent and float(resized.scale) == 1.0

    def tables(self, axes: Sequence[AxisResize]) -> list[Taps]:
        """The table of every axis."""
        return [self.interpolation.taps(axis) for axis in axes]

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x = operands[0]
        for name, allowed in (
            ("mode", MODES),
            ("coordinates", COORDINATE_MODES),
            ("nearest", NEAREST_MODES),
            ("policy", POLICIES),
        ):
            word = self.attributes()[name]
            if word not in allowed:
                raise ModelError(f"{name} is unknown", expected=", ".join(allowed), found=word)
        if self.mode != "nearest" and x.element not in FLOATS:
            raise ModelError("only floats are interpolated", expected="a float type", found=x.element)
        return (x.type.with_shape(tuple(axis.result for axis in self.known_axes(*operands))),)

    def reference(
        self, x: Array, region: Array | None = None, scales: Array | None = None, sizes: Array | None = None
    ) -> Array:
        if self.coordinates != CROPPING:
            region = None
        result = x.astype(np.float64) if self.mode != "nearest" else x
        tables = self.tables(self.resized_axes(x.shape, region, scales, sizes))
        for axis, taps in enumerate(tables):
            result = apply_taps(result, axis, taps)
        for axis, taps in enumerate(tables):
            outside = taps.outside.reshape(-1, *[1] * (x.ndim - axis - 1))
            result = np.where(outside, np.asarray(self.extrapolation).astype(result.dtype), result)
        return np.asarray(result).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(8).standard_normal((1, 2, 5, 6)).astype(np.float32)
        up, down = np.array([1, 1, 2, 3], np.float32), np.array([1, 1, 0.6, 0.5], np.float32)
        sizes = np.array([1, 2, 7, 4], np.int64)
        region = np.array([0, 0, 0.2, -0.2, 1, 1, 0.7, 1.2], np.float32)
        return [
            Sample(cls(), (x, None, up)),
            Sample(cls(coordinates="asymmetric", nearest="floor"), (x, None, down)),
            Sample(cls(nearest="round_prefer_ceil"), (x, None, None, sizes)),
            Sample(cls("nearest", "align_corners", "ceil"), (x, None, None, sizes)),
            Sample(cls("linear"), (x, None, up)),
            Sample(cls("linear", "pytorch_half_pixel"), (x, None, None, sizes)),
            Sample(cls("linear", "align_corners"), (x, None, None, sizes)),
            Sample(cls("linear", "half_pixel_symmetric"), (x, None, up)),
            Sample(cls("linear", "tf_crop_and_resize", extrapolation=9.0), (x, region, None, sizes)),
            Sample(cls("cubic"), (x, None, up)),
            Sample(cls("cubic", "asymmetric", cubic=-0.5, exclude_outside=True), (x, None, None, sizes)),
            Sample(cls("linear", policy="not_larger", axes=(2, 3)), (x, None, None, np.array([7, 8], np.int64))),
            Sample(cls("nearest", policy="not_smaller", axes=(2, 3)), (x, None, None, np.array([7, 8], np.int64))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, one = np.ones((2, 3), np.float32), np.ones(2, np.float32)
        return [
            ErrorSample(cls(), (x,), "either scales or sizes"),
            ErrorSample(cls(), (x, None, one[:1]), "not one number for each axis"),
            ErrorSample(cls(), (x, None, -one), "a scale is out of range"),
            ErrorSample(cls("area"), (x, None, one), "mode is unknown"),
            ErrorSample(cls("linear"), (x.astype(np.int32), None, one), "only floats"),
            ErrorSample(cls(), (x[:, :0], None, None, np.array([2, 3])), "an empty axis"),
        ]


def apply_taps(x: Array, axis: int, taps: Taps) -> Array:
    """x resampled along an axis."""
    if taps.picks is not None:
        return np.take(x, taps.picks, axis=axis)
    total = np.zeros((*x.shape[:axis], len(taps.indices), *x.shape[axis + 1 :]), x.dtype)
    shape = (-1, *[1] * (x.ndim - axis - 1))
    for indices, weights in zip(taps.indices.T, taps.weights.T, strict=True):
        total += np.take(x, indices, axis=axis) * weights.reshape(shape)
    return total
