"""Weights filled up with zeros to whole blocks and panels."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def zero_padded(array: Array, shape: tuple[int, ...]) -> Array:
    """The array with zeros behind it along every axis, up to a shape; the array itself where it has that shape."""
    if array.shape == shape:
        return array
    padded = np.zeros(shape, array.dtype)
    padded[tuple(slice(extent) for extent in array.shape)] = array
    return padded
