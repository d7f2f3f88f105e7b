"""The matrices of Winograd's minimal filtering F(m x m, 3 x 3), for tiles of 2 and of 4 pixels along each side.

Lavin and Gray, *Fast Algorithms for Convolutional Neural Networks* (2015). An output tile Y of m x m pixels follows
from an input tile d of (m + 2) x (m + 2) and filters g of 3 x 3: Y = A^T [(G g G^T) * (B^T d B)] A, products element by
element, summed over input channels. Larger tiles take fewer products, and more and larger transformed weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Matrix = tuple[tuple[float, ...], ...]

KERNEL: Final = 3
PLANE_NUMBERS: Final = 1 << 15
"""Of one plane, while weights are transformed."""


@dataclass(frozen=True)
class MinimalFiltering:
    """One tile size."""

    tile: int
    """Output pixels along each side of a tile."""
    input_transform: Matrix
    """B^T."""
    output_transform: Matrix
    """A^T."""
    weight_transform: Matrix
    """G."""

    @property
    def points(self) -> int:
        """Input pixels along each side of a tile."""
        return self.tile + KERNEL - 1

    @property
    def products(self) -> int:
        """Products of a tile for each pair of channels."""
        return self.points * self.points

    def tiles(self, height: int, width: int) -> int:
        """Tiles that cover an image."""
        return -(-height // self.tile) * -(-width // self.tile)

    def transform_weights(self, w: Array, result: Array) -> None:
        """[O, I, 3, 3] to [products, I, O], where the last axis may be several; in float64 and rounded once.

        By planes [I, O], some input channels at a time: products of many tiny matrices would take NumPy ten times as
        long, whole planes would leave the cache.
        """
        outputs, inputs = w.shape[:2]
        step = max(1, PLANE_NUMBERS // max(outputs, 1))
        for first in range(0, inputs, step):
            some = slice(first, first + step)
            planes = w[:, some].transpose(2, 3, 1, 0).astype(np.float64, order="C")
            for row, factors in enumerate(self.weight_transform):
                half = _weighted_sum(factors, planes)
                for column, others in enumerate(self.weight_transform):
                    plane = _weighted_sum(others, half)
                    result[row * self.points + column, some] = plane.reshape(len(plane), *result.shape[2:])

    def restore_weights(self, u: Array) -> Array:
        """The inverse of `transform_weights`, up to rounding."""
        inverse = np.linalg.pinv(np.asarray(self.weight_transform, np.float64))
        points = u.astype(np.float64).reshape(self.points, self.points, *u.shape[1:])
        return np.asarray(np.einsum("kp,pqio,lq->oikl", inverse, points, inverse, optimize=True))

    def convolve_tiles(self, x: Array, u: Array, height: int, width: int, pad_top: int, pad_left: int) -> Array:
        """The convolution by tiles in float64: x [N, I, H, W], u [products, I, O] to [N, O, height, width]."""
        tile, extent = self.tile, self.points
        rows, columns = -(-height // tile), -(-width // tile)
        below = max(rows * tile + KERNEL - 1 - pad_top - x.shape[2], 0)
        right = max(columns * tile + KERNEL - 1 - pad_left - x.shape[3], 0)
        padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad_top, below), (pad_left, right)])
        tiles = np.lib.stride_tricks.sliding_window_view(padded, (extent, extent), (2, 3))[:, :, ::tile, ::tile]
        tiles = tiles[:, :, :rows, :columns]
        b, a = np.asarray(self.input_transform, np.float64), np.asarray(self.output_transform, np.float64)
        points = np.einsum("pk,nirckl,ql->pqnirc", b, tiles, b, optimize=True)
        weights = u.astype(np.float64).reshape(extent, extent, *u.shape[1:])
        sums = np.einsum("pqnirc,pqio->pqnorc", points, weights, optimize=True)
        result = np.einsum("kp,pqnorc,lq->norkcl", a, sums, a, optimize=True)
        whole = result.reshape(x.shape[0], u.shape[2], rows * tile, columns * tile)
        return np.ascontiguousarray(whole[:, :, :height, :width])


def _weighted_sum(factors: tuple[float, ...], arrays: Array) -> Array:
    """The sum of factors times `arrays[0]`, `arrays[1]` ..."""
    total = factors[0] * arrays[0]
    for factor, array in zip(factors[1:], arrays[1:], strict=True):
        if factor:
            total += factor * array
    return np.asarray(total)


_SMALL: Final = MinimalFiltering(
    tile=2,
    input_transform=(
        (1, 0, -1, 0),
        (0, 1, 1, 0),
        (0, -1, 1, 0),
        (0, -1, 0, 1),
    ),
    output_transform=(
        (1, 1, 1, 0),
        (0, 1, -1, 1),
    ),
    weight_transform=(
        (1, 0, 0),
        (1 / 2, 1 / 2, 1 / 2),
        (1 / 2, -1 / 2, 1 / 2),
        (0, 0, 1),
    ),
)
"""Points 0, 1, -1 and infinity."""

_LARGE: Final = MinimalFiltering(
    tile=4,
    input_transform=(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    output_transform=(
        (1, 1, 1, 1, 1, 0),
        (0, 1, -1, 2, -2, 0),
        (0, 1, 1, 4, 4, 0),
        (0, 1, -1, 8, -8, 1),
    ),
    weight_transform=(
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
)
"""Points 0, 1, -1, 2, -2 and infinity."""

FILTERINGS: Final[Mapping[int, MinimalFiltering]] = {form.tile: form for form in (_SMALL, _LARGE)}
"""By tile size."""
