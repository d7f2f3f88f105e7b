"""Conversions to and from the narrow element types, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.types import NARROW_FLOATS, ElementType, NarrowFloat

Array = np.ndarray[Any, np.dtype[Any]]

F32_MANTISSA, F32_BIAS = 23, 127


def widened(x: Array, element: ElementType) -> Array:
    """Narrow numbers in the type to compute in, exactly; bits above those of an element are nothing."""
    codes = np.asarray(x).view(np.uint8) & np.uint8((1 << element.bits) - 1)
    return np.asarray(codes).view(element.dtype).astype(element.wide.dtype)


def narrow_float(x: Array, element: ElementType, saturates: bool) -> Array:
    """Float32 numbers to a narrow float: to nearest, halves to even; powers of two (E8M0) up.

    Args:
        x: numbers, of which those rounded to float32 before were rounded to odd.
        element: the narrow type.
        saturates: what is beyond the largest number becomes that; else infinity, or NaN where there is none.
    """
    form = NARROW_FLOATS[element]
    codes = _power_codes(x, saturates) if form.is_power else _codes(x, element, form, saturates)
    return codes.astype(np.uint8).view(element.dtype)


def narrow_integer(x: Array, element: ElementType) -> Array:
    """Integers to a narrow integer: the lower bits are kept."""
    kept = x.astype(np.uint8, casting="unsafe") & np.uint8((1 << element.bits) - 1)
    return np.asarray(kept).view(element.dtype)


def _codes(x: Array, element: ElementType, form: NarrowFloat, saturates: bool) -> Array:
    codes = x.astype(element.dtype).view(np.uint8)
    if form.nan is None:
        return np.where(np.isnan(x), 0, codes)
    sign = np.where(np.signbit(x), form.sign, 0)
    infinite = (codes == form.nan) if form.has_one_zero else (codes & ~np.uint8(form.sign)) > form.largest
    beyond = infinite & ~np.isnan(x)
    keeps_sign = saturates or not form.has_one_zero
    overflow = (form.largest if saturates else form.overflow) | (sign if keeps_sign else 0)
    return np.where(np.isnan(x), form.nan, np.where(beyond, overflow, codes))


def _power_codes(x: Array, saturates: bool) -> Array:
    """The exponent of the smallest power of two that is not below x."""
    form = NARROW_FLOATS[ElementType.F8E8M0]
    mantissa, exponent = np.frexp(x.astype(np.float64))  # mantissa in [0.5, 1)
    power = exponent - (mantissa == 0.5) + F32_BIAS
    below, beyond = (x == 0) | (np.ldexp(1.0, -F32_BIAS) > x), np.isinf(x) | (power > form.largest)
    codes = np.where(below, 0 if saturates else form.overflow, power)
    codes = np.where(beyond, form.largest if saturates else form.overflow, codes)
    return np.where(np.isnan(x) | (x < 0), form.overflow, codes)
