"""Pooling over regions of images that data names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS, SHAPES
from glowstone.scalar import convert
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

IMAGE_RANK = 4
POOLINGS = ("average", "max")


def _check_regions(x: Value, regions: Value, corners: int, cells: tuple[int, int]) -> TensorType:
    """The type of the result, of operands that fit each other."""
    if x.rank != IMAGE_RANK:
        raise ShapeError("x is no batch of images", expected="[N, C, H, W]", found=list(x.shape))
    if regions.rank != 2 or regions.shape[1] != corners or regions.element is not x.element:
        raise ShapeError("not a list of regions", expected=f"{x.element}[regions, {corners}]", found=str(regions.type))
    if min(cells) < 1:
        raise ModelError("a region has cells along both axes", expected="1 or more", found=cells)
    shape = (regions.shape[0], x.shape[1], *cells)
    if 0 in (x.shape[0], *x.shape[2:]) and 0 not in shape:
        raise ShapeError("nothing to take elements from", expected="images that are not empty", found=str(x.type))
    return x.type.with_shape(shape)


def _image(x: Array, number: int, name: str) -> Array:
    """One of the images in float64.

    Raises:
        ExecutionError: there is none of this number.
    """
    if not -x.shape[0] <= number < x.shape[0]:
        expected = f"{-x.shape[0]} to {x.shape[0] - 1}"
        raise ExecutionError("index out of range", operator=name, expected=expected, found=number)
    return np.asarray(x[number], np.float64)


@operator
class RoiAlign(Operator):
    """Mean or maximum over cells of regions (x1, y1, x2, y2), at points between pixels. ONNX RoiAlign-16.

    A cell has `points` by `points` points, or as many as pixels where that is 0. With `half_pixel` pixel centres are at
    0.5; without, a region has at least one pixel. The maximum is over neighbours times their weights.
    """

    onnx = "RoiAlign-16"
    operands = (Operand("x", FLOATS), Operand("regions", FLOATS), Operand("images", SHAPES))
    pooling: str = "average"
    half_pixel: bool = True
    cells: tuple[int, int] = (1, 1)
    points: int = 0
    scale: float = 1.0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, regions, images = operands
        if self.pooling not in POOLINGS:
            raise ModelError("pooling is unknown", expected=", ".join(POOLINGS), found=self.pooling)
        if self.points < 0:
            raise ModelError("points of a cell are negative", expected="0 or more", found=self.points)
        result = _check_regions(x, regions, 4, self.cells)
        if images.shape != regions.shape[:1]:
            raise ShapeError("not one image for each region", expected=list(regions.shape[:1]), found=images.shape)
        return (result,)

    def reference(self, x: Array, regions: Array, images: Array) -> Array:
        result = np.zeros((len(regions), x.shape[1], *self.cells))
        for number, (region, image) in enumerate(zip(regions.astype(np.float64), images, strict=True)):
            source = _image(x, int(image), self.name)
            x1, y1, x2, y2 = region * self.scale - (0.5 if self.half_pixel else 0)
            rows = self._points(y1, y2, self.cells[0])
            columns = self._points(x1, x2, self.cells[1])
            for row, column in np.ndindex(*self.cells):
                result[number, :, row, column] = self._cell(source, rows[row], columns[column])
        return result.astype(x.dtype)

    def _points(self, low: float, high: float, cells: int) -> Array:
        """[cells, points] along one axis."""
        size = high - low if self.half_pixel else max(high - low, 1)
        count = self.points or max(_whole(np.ceil(size / cells)), 0)
        steps = np.arange(cells)[:, None] + (np.arange(count) + 0.5) / max(count, 1)
        return np.asarray(low + steps * size / cells)

    def _cell(self, image: Array, rows: Array, columns: Array) -> Array:
        terms = [_neighbours(image, float(y), float(x)) for y in rows for x in columns]
        if not terms:
            return np.zeros(image.shape[0])
        joined = np.stack(terms)  # [points, 4, C]
        return np.asarray(joined.max(axis=(0, 1)) if self.pooling == "max" else joined.sum(axis=1).mean(axis=0))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(11)
        x = random.standard_normal((2, 3, 7, 6)).astype(np.float32)
        regions = np.array([[0, 0, 5, 6], [1.5, 2.2, 1.6, 2.3], [-3, -2, 20, 30], [2, 1, 4.5, 6]], np.float32)
        images = np.array([0, 1, 1, 0])
        return [
            Sample(cls(half_pixel=half, cells=(3, 2), points=points, scale=scale), (x, regions, images))
            for half, points, scale in ((True, 2, 1.0), (False, 2, 0.5), (True, 0, 1.0), (False, 0, 0.7))
        ] + [Sample(cls("max", cells=(2, 2), points=2), (x, regions, images))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, regions, images = np.ones((1, 1, 3, 3), np.float32), np.ones((2, 4), np.float32), np.zeros(2, np.int64)
        return [
            ErrorSample(cls("sum"), (x, regions, images), "pooling is unknown"),
            ErrorSample(cls(points=-1), (x, regions, images), "points of a cell"),
            ErrorSample(cls(), (x[0], regions, images), "no batch of images"),
            ErrorSample(cls(), (x, regions[:, :3], images), "not a list of regions"),
            ErrorSample(cls(), (x, regions, images[:1]), "not one image for each region"),
            ErrorSample(cls(cells=(0, 1)), (x, regions, images), "cells along both axes"),
            ErrorSample(cls(), (x[..., :0], regions, images), "nothing to take elements from"),
        ]


def _neighbours(image: Array, y: float, x: float) -> Array:
    """[4, C]: the elements around a point, times their weights; zeros more than one element outside."""
    _, height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros((4, image.shape[0]))
    sides = []
    for place, extent in ((y, height), (x, width)):
        place = min(max(place, 0), extent - 1)
        low = int(place)
        sides.append([(low, 1 - (place - low)), (min(low + 1, extent - 1), place - low)])
    return np.stack([image[:, row, column] * a * b for row, a in sides[0] for column, b in sides[1]])


@operator
class MaxRoiPool(Operator):
    """Maximum over cells of regions (image, x1, y1, x2, y2) of whole pixels; 0 of an empty cell. ONNX MaxRoiPool-1."""

    onnx = "MaxRoiPool-1"
    operands = (Operand("x", FLOATS), Operand("regions", FLOATS))
    cells: tuple[int, int] = (1, 1)
    scale: float = 1.0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, regions = operands
        return (_check_regions(x, regions, 5, self.cells),)

    def reference(self, x: Array, regions: Array) -> Array:
        result = np.zeros((len(regions), x.shape[1], *self.cells))
        for number, region in enumerate(regions):
            image = _image(x, _whole(region[0]), self.name)
            scaled = region[1:].astype(np.float32) * np.float32(self.scale)
            left, top, right, bottom = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)
            rows = _pixels(float(top), float(bottom), self.cells[0], image.shape[1])
            columns = _pixels(float(left), float(right), self.cells[1], image.shape[2])
            for row, column in np.ndindex(*self.cells):
                part = image[:, rows[row], columns[column]]
                if part.size:
                    result[number, :, row, column] = part.max(axis=(1, 2))
        return result.astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(12).standard_normal((2, 3, 7, 6)).astype(np.float32)
        corners = [[0, 0, 0, 5, 6], [1, 1.5, 2.2, 1.6, 2.3], [1, -3, -2, 20, 30], [0, 2, 1, 4.5, 6], [0, 9, 9, 12, 12]]
        regions = np.array(corners, np.float32)
        return [Sample(cls((3, 2)), (x, regions)), Sample(cls((2, 4), 0.6), (x, regions))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, regions = np.ones((1, 1, 3, 3), np.float32), np.ones((2, 5), np.float32)
        return [
            ErrorSample(cls(), (x[0], regions), "no batch of images"),
            ErrorSample(cls(), (x, regions[:, :4]), "not a list of regions"),
        ]


def _pixels(low: float, high: float, cells: int, extent: int) -> list[slice]:
    """The pixels of every cell along one axis."""
    step = np.float32(max(high - low + 1, 1)) / np.float32(cells)
    starts = [_whole(np.floor(np.float32(cell) * step) + low) for cell in range(cells)]
    ends = [_whole(np.ceil(np.float32(cell + 1) * step) + low) for cell in range(cells)]
    return [
        slice(min(max(start, 0), extent), min(max(end, 0), extent)) for start, end in zip(starts, ends, strict=True)
    ]


def _whole(number: float) -> int:
    """A number without its fraction, within the range of i64; NaN gives 0."""
    return int(convert(np.asarray(number), ElementType.I64))
