"""The matrices of Winograd's minimal filtering F(4 x 4, 3 x 3), with points 0, 1, -1, 2, -2 and infinity.

Lavin and Gray, *Fast Algorithms for Convolutional Neural Networks* (2015). An output tile Y of 4 x 4 pixels follows
from an input tile d of 6 x 6 and filters g of 3 x 3: Y = A^T [(G g G^T) * (B^T d B)] A, products element by element,
summed over input channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

TILE = 4
"""Output pixels along each side of a tile."""
KERNEL = 3
POINTS = TILE + KERNEL - 1
"""Input pixels along each side of a tile."""

INPUT_TRANSFORM = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
"""B^T."""

OUTPUT_TRANSFORM = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)
"""A^T."""

_WEIGHT_TRANSFORM: tuple[tuple[float, float, float], ...] = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
"""G."""


def transform_weights(w: Array) -> Array:
    """[O, I, 3, 3] to [36, I, O], computed in float64 and rounded once.

    Whole planes [I, O] at a time: products of many tiny matrices would take NumPy ten times as long.
    """
    planes = np.ascontiguousarray(w.transpose(2, 3, 1, 0)).astype(np.float64)
    result = np.empty((POINTS, POINTS, w.shape[1], w.shape[0]), w.dtype)
    for row, factors in enumerate(_WEIGHT_TRANSFORM):
        half = _weighted_sum(factors, planes)
        for column, others in enumerate(_WEIGHT_TRANSFORM):
            result[row, column] = _weighted_sum(others, half)
    return result.reshape(POINTS * POINTS, w.shape[1], w.shape[0])


def _weighted_sum(factors: tuple[float, ...], arrays: Array) -> Array:
    """The sum of factors times `arrays[0]`, `arrays[1]` ..."""
    total = factors[0] * arrays[0]
    for factor, array in zip(factors[1:], arrays[1:], strict=True):
        if factor:
            total += factor * array
    return np.asarray(total)


def restore_weights(u: Array) -> Array:
    """The inverse of `transform_weights`, up to rounding."""
    inverse = np.linalg.pinv(np.asarray(_WEIGHT_TRANSFORM, np.float64))
    points = u.astype(np.float64).reshape(POINTS, POINTS, *u.shape[1:])
    return np.asarray(np.einsum("kp,pqio,lq->oikl", inverse, points, inverse, optimize=True))


def convolve_tiles(x: Array, u: Array, height: int, width: int, pad_top: int, pad_left: int) -> Array:
    """The convolution by tiles in float64: x [N, I, H, W], u [36, I, O] to [N, O, height, width]."""
    rows, columns = -(-height // TILE), -(-width // TILE)
    below = max(rows * TILE + KERNEL - 1 - pad_top - x.shape[2], 0)
    right = max(columns * TILE + KERNEL - 1 - pad_left - x.shape[3], 0)
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad_top, below), (pad_left, right)])
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (POINTS, POINTS), (2, 3))[:, :, ::TILE, ::TILE]
    tiles = tiles[:, :, :rows, :columns]
    b, a = np.asarray(INPUT_TRANSFORM, np.float64), np.asarray(OUTPUT_TRANSFORM, np.float64)
    points = np.einsum("pk,nirckl,ql->pqnirc", b, tiles, b, optimize=True)
    weights = u.astype(np.float64).reshape(POINTS, POINTS, *u.shape[1:])
    sums = np.einsum("pqnirc,pqio->pqnorc", points, weights, optimize=True)
    result = np.einsum("kp,pqnorc,lq->norkcl", a, sums, a, optimize=True)
    whole = result.reshape(x.shape[0], u.shape[2], rows * TILE, columns * TILE)
    return np.ascontiguousarray(whole[:, :, :height, :width])
