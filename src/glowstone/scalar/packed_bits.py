"""Weights of few bits, in NumPy: what the graph's and the program's operators on them share."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def unpacked(weights: Array, scales: Array, zero_points: Array, bits: int) -> Array:
    """(q - zero point) * scale as float32 [N, blocks * block].

    `weights` are bytes [N, blocks, block * bits / 8], the first number in the lowest bits; scales and zero points are
    [N, blocks]; `bits`, those of a number, divide 8.
    """
    numbers = weights[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8(2**bits - 1)
    columns, blocks, size = weights.shape
    block = size * (8 // bits)
    by_block = numbers.reshape(columns, blocks, block).astype(np.float32)
    meant: Any = (by_block - zero_points[..., None]) * scales[..., None]
    return np.asarray(meant).reshape(columns, blocks * block)
