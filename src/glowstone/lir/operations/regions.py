"""Pooling over regions of images that data names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from glowstone.errors import ExecutionError
from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.matmul import wide
from glowstone.types import ElementType

LARGEST_GRID = 1 << 16
"""Points of a cell along one axis are at most so many, whatever the region says."""


def _verify_regions(y: View, x: View, regions: View, corners: int) -> None:
    require(y.rank == x.rank == 4, f"ranks {y.rank}, {x.rank}")
    require(regions.shape == (y.shape[0], corners), f"{y.shape} from regions {regions.shape}")
    require(y.shape[1] == x.shape[1], f"channels of {y.shape} and {x.shape}")
    require(x.size > 0 or y.size == 0, "nothing to take elements from")
    require(y.element is x.element is regions.element and x.element.is_float, f"{y.element} from {x.element}")


@operation
class RoiAlign(Operation):
    """Cells of regions, of points interpolated between four neighbours: their mean, or the largest weighted neighbour.

    Operands: y [R, C, rows, columns], x [N, C, H, W], regions [R, 4] (x1, y1, x2, y2, times `scale` in pixels of x),
    images [R] (i64, which of the N; one out of range is an error and counts as 0). A cell has `points` by `points`
    points, or as many as pixels where that is 0. With `half_pixel` pixel centres are at 0.5; without, a region has at
    least one pixel. Points more than a pixel outside count as 0.
    """

    mode: str
    half_pixel: bool
    points: int
    scale: float
    ulp_bound: ClassVar[float] = 512.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN, Access.IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, regions, images = views
        require(self.mode in ("average", "max"), f"mode {self.mode}")
        _verify_regions(y, x, regions, 4)
        require(images.shape == y.shape[:1] and images.element is ElementType.I64, f"images {images.shape}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, regions, images = arrays
        if y.size == 0:
            return
        for number, (region, image) in enumerate(zip(regions, images, strict=True)):
            if not -x.shape[0] <= image < x.shape[0]:
                raise ExecutionError("index out of range", operator=self.name, found=int(image))
            y[number] = align_region(self, wide(x[image]), region.astype(np.float64), y.shape[2:])


def align_region(operation: Any, image: Array, region: Array, cells: tuple[int, ...]) -> Array:
    """[C, rows, columns] of one region of an image [C, H, W]."""
    offset = 0.5 if operation.half_pixel else 0.0
    x1, y1, x2, y2 = region * operation.scale - offset
    axes = []
    for low, high, count, extent in ((y1, y2, cells[0], image.shape[1]), (x1, x2, cells[1], image.shape[2])):
        size = high - low if operation.half_pixel else max(high - low, 1.0)
        points = operation.points or int(min(max(np.ceil(size / count), 0), LARGEST_GRID))
        step = size / count
        places = low + np.arange(count)[:, None] * step + (np.arange(points) + 0.5) * step / max(points, 1)
        axes.append(_neighbours(places, extent))
    (rows, row_weights, rows_inside), (columns, column_weights, columns_inside) = axes
    taken = image[:, rows[:, :, :, None, None, None], columns]
    weighted = taken * row_weights[:, :, :, None, None, None] * column_weights
    weighted = np.where(rows_inside[:, :, None, None, None, None] & columns_inside[..., None], weighted, 0)
    if 0 in weighted.shape:
        return np.zeros((image.shape[0], *cells))
    if operation.mode == "max":
        return np.asarray(weighted.max(axis=(2, 3, 5, 6)))
    return np.asarray(weighted.sum(axis=(3, 6)).mean(axis=(2, 4)))


def _neighbours(places: Array, extent: int) -> tuple[Array, Array, Array]:
    """[cell, point, 2]: elements on both sides and their weights; [cell, point]: at most one element outside."""
    inside = (places >= -1) & (places <= extent)
    places = np.where(inside, np.maximum(places, 0), 0)
    low = np.minimum(places.astype(np.int64), extent - 1)
    high = np.minimum(low + 1, extent - 1)
    fraction = np.where(low >= extent - 1, 0, places - low)
    weights = np.stack([1 - fraction, fraction], axis=-1)
    return np.stack([low, high], axis=-1), weights, inside


@operation
class RoiPool(Operation):
    """Largest element of every cell of regions; a cell without elements gives 0.

    Operands: y [R, C, rows, columns], x [N, C, H, W], regions [R, 5] (image, x1, y1, x2, y2, times `scale` in pixels,
    rounded, both ends within). An image out of range is an error and counts as 0.
    """

    scale: float
    ulp_bound: ClassVar[float] = 0.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, regions = views
        _verify_regions(y, x, regions, 5)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, regions = arrays
        if y.size == 0:
            return
        for number, region in enumerate(regions):
            image = int(region[0])
            if not -x.shape[0] <= image < x.shape[0]:
                raise ExecutionError("index out of range", operator=self.name, found=image)
            y[number] = pool_region(x[image], region[1:], self.scale, y.shape[2:])


def pool_region(image: Array, region: Array, scale: float, cells: tuple[int, ...]) -> Array:
    """[C, rows, columns] of one region of an image [C, H, W]; arithmetic in float32, or float64 of such regions."""
    kind: Any = np.float64 if region.dtype == np.float64 else np.float32
    scaled = np.asarray(region, kind) * kind(scale)
    x1, y1, x2, y2 = np.copysign(np.floor(np.abs(scaled) + kind(0.5)), scaled)
    axes = []
    for low, high, count, extent in ((y1, y2, cells[0], image.shape[1]), (x1, x2, cells[1], image.shape[2])):
        step = max(high - low + kind(1), kind(1)) / kind(count)
        starts = np.floor(np.arange(count).astype(kind) * step) + low
        ends = np.ceil(np.arange(1, count + 1).astype(kind) * step) + low
        axes.append([np.clip(places, 0, extent).astype(np.int64) for places in (starts, ends)])
    result = np.zeros((image.shape[0], *cells), image.dtype)
    for row, column in np.ndindex(*cells):
        (tops, bottoms), (lefts, rights) = axes
        part = image[:, tops[row] : bottoms[row], lefts[column] : rights[column]]
        if part.size:
            result[:, row, column] = part.max(axis=(1, 2))
    return result
