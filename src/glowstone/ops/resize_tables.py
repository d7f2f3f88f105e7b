"""Resizing along one axis: which elements of x an element of the result is made of, and their weights.

All arithmetic is that of the ONNX specification, on the host. Coordinates are those of x's elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.support.budget import budget

Array = np.ndarray[Any, np.dtype[Any]]
TABLE_BYTES = 64
"""About what the tables take for an element of the result."""

CROPPING = "tf_crop_and_resize"
"""The one mode in which results may lie outside of x."""
COORDINATE_MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    CROPPING,
)
NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "legacy")
MODES = ("nearest", "linear", "cubic")


@dataclass(frozen=True)
class AxisResize:
    """One axis: extents of x and result, and the scale, which need not be their quotient. `roi` is (begin, end)."""

    extent: int
    result: int
    scale: Any
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Taps:
    """For result j the sum over t of `weights[j, t]` times x at `indices[j, t]`; `outside[j]` takes another value."""

    indices: Array
    weights: Array
    outside: Array

    def is_identity(self, extent: int) -> bool:
        """Whether the result is x, which has this extent."""
        return self.picks is not None and np.array_equal(self.picks, np.arange(extent))

    def repeats(self, extent: int) -> int:
        """How many times in a row each of x's elements, of which there are so many, stands in the result; else 0."""
        count = len(self.indices) // extent if extent else 0
        is_whole = self.picks is not None and np.array_equal(self.picks, np.repeat(np.arange(extent), count))
        return count if is_whole else 0

    @property
    def picks(self) -> Array | None:
        """The one element that every result is, or None where some are made of several."""
        used = self.weights != 0
        if not ((used.sum(axis=1) == 1).all() and (self.weights[used] == 1).all()):
            return None
        return np.asarray(self.indices[used])


@dataclass(frozen=True)
class Interpolation:
    """How coordinates become weights; the fields are the attributes of ONNX Resize."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False

    def taps(self, axis: AxisResize) -> Taps:
        """The table of one axis. x has at least one element where the result has any."""
        places = _coordinates(self.coordinates, axis)
        outside = np.zeros(axis.result, bool)
        if self.coordinates == CROPPING:
            outside = (places < 0) | (places > axis.extent - 1)
            places = np.clip(places, 0, max(axis.extent - 1, 0))
        left = np.ceil(places) - 1  # the element on the left, so that the distance from it is in (0, 1]
        distance = np.asarray(places - left, np.float64)
        offsets, weights = self._weights(distance, float(axis.scale))
        indices = left.astype(np.int64)[:, None] + offsets
        if self.exclude_outside:
            weights = np.where((indices < 0) | (indices >= axis.extent), 0, weights)
            weights = weights / weights.sum(axis=1, keepdims=True)
        return Taps(np.clip(indices, 0, max(axis.extent - 1, 0)), weights, outside)

    def _weights(self, distance: Array, scale: float) -> tuple[Array, Array]:
        """Offsets from the element on the left, [t], and weights, [j, t]."""
        if self.mode == "nearest":
            return np.arange(2), self._nearest_weights(distance, scale)
        reach = 1 if self.mode == "linear" else 2
        shrink = min(scale, 1.0) if self.antialias else 1.0
        start = int(np.floor(-reach / shrink)) + 1
        offsets = np.arange(start, 2 - start) if self.antialias else np.arange(1 - reach, reach + 1)
        away = np.abs(offsets - distance[:, None]) * shrink
        weights = np.clip(1 - away, 0, 1) if self.mode == "linear" else cubic_weights(away, self.cubic)
        if self.antialias:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return offsets, weights

    def _nearest_weights(self, distance: Array, scale: float) -> Array:
        takes_right = {
            "round_prefer_floor": distance > 0.5,
            "round_prefer_ceil": distance >= 0.5,
            "floor": distance == 1,
            "ceil": distance > 0,
            "legacy": distance > 0 if scale < 1 else distance == 1,
        }[self.nearest]
        return np.stack([~takes_right, takes_right], axis=1).astype(np.float64)


def cubic_weights(away: Array, alpha: float) -> Array:
    """The cubic convolution kernel at distances that are not negative."""
    near = ((alpha + 2) * away - (alpha + 3)) * away * away + 1
    far = ((alpha * away - 5 * alpha) * away + 8 * alpha) * away - 4 * alpha
    return np.where(away <= 1, near, np.where(away < 2, far, 0))


def _coordinates(mode: str, axis: AxisResize) -> Array:
    """Where in x the elements of the result are, in the precision of the scale."""
    scale = axis.scale
    budget().take_bytes(TABLE_BYTES * axis.result, "places along a resized axis")
    x = np.arange(axis.result).astype(np.asarray(scale).dtype)
    width = scale * axis.extent
    last = axis.extent - 1
    if mode == "align_corners":
        return np.zeros_like(x) if width == 1 else np.asarray(x * last / (width - 1))
    if mode == "asymmetric":
        return np.asarray(x / scale)
    if mode == CROPPING:
        begin, end = axis.roi
        if width == 1:
            return np.full_like(x, (end - begin) * last / 2 + begin * last)
        return np.asarray(x * (end - begin) * last / (width - 1) + begin * last)
    if mode == "pytorch_half_pixel" and width == 1:
        return np.full_like(x, -0.5)
    centred = (x + np.asarray(0.5, x.dtype)) / scale - np.asarray(0.5, x.dtype)
    if mode == "half_pixel_symmetric":
        return np.asarray(axis.extent / 2 * (1 - axis.result / width) + centred)
    return np.asarray(centred)
