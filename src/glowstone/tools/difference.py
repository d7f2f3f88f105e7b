"""How far an array is from what it should be, and how far it may be."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from glowstone.types import NARROW_FLOATS, ElementType

Array = np.ndarray[Any, np.dtype[Any]]

FULL_TOLERANCE: Final = 1e-4
"""What computations in float32 and float64 may differ by, as a part of the largest value."""
HALF_TOLERANCE: Final = 5e-3
"""Likewise for float16 and bfloat16."""
_HALF_BYTES: Final = 2
_FRACTION_BITS: Final = {ElementType.F64: 52, ElementType.F32: 23, ElementType.F16: 10, ElementType.BF16: 7} | {
    element: form.mantissa_bits for element, form in NARROW_FLOATS.items()
}


def largest_difference(found: Array, expected: Array) -> float:
    """The largest difference between two arrays, as a part of the largest finite value expected.

    Infinite where shapes, element types, NaN or infinities differ, and where integers or booleans do.
    """
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return float("inf")
    if not is_float(expected):
        return 0.0 if np.array_equal(found, expected) else float("inf")
    wide, target = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(target)
    if not np.array_equal(wide[~finite], target[~finite], equal_nan=True) or not np.isfinite(wide[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    scale = float(np.abs(target[finite]).max()) or 1.0
    return float(np.abs(wide[finite] - target[finite]).max()) / scale


def tolerance_of(array: Array, given: float | None = None) -> float:
    """What an array may differ by: 0 for integers and booleans, else what is given or usual for the element type."""
    if not is_float(array):
        return 0.0
    if given is not None:
        return given
    if ElementType.from_dtype(array.dtype).is_narrow:
        return unit_in_last_place(array)
    return HALF_TOLERANCE if array.dtype.itemsize <= _HALF_BYTES else FULL_TOLERANCE


def is_float(array: Array) -> bool:
    """Whether the elements are floating point, bfloat16 and narrower ones included."""
    return ElementType.from_dtype(array.dtype).wide.is_float


def unit_in_last_place(array: Array) -> float:
    """The distance from 1 to the next larger number of the array's element type; 0 for integers and booleans."""
    if not is_float(array):
        return 0.0
    return 2.0 ** -_FRACTION_BITS[ElementType.from_dtype(array.dtype)]
