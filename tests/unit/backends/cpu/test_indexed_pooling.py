"""Pooling with positions as machine code, against windows walked one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.lir import PoolWithIndices
from glowstone.types import ElementType

# size, window, strides, dilations, pads before, extents of the result
CASES = [
    ((5,), (3,), (2,), (1,), (1,), (3,)),
    ((6, 7), (2, 3), (1, 2), (2, 1), (1, 0), (5, 3)),
    ((3, 4, 5), (2, 2, 2), (1, 2, 2), (1, 1, 2), (0, 1, 0), (2, 2, 2)),
    ((4, 4), (1, 1), (1, 1), (1, 1), (0, 0), (0, 4)),
]
ELEMENTS = [ElementType.F32, ElementType.F64, ElementType.I8, ElementType.U8]


def largest(x, case, column_major):
    """Values and positions, the first of equal values."""
    size, window, strides, dilations, pads, result = case
    values, positions = np.zeros((*x.shape[:2], *result), x.dtype), np.zeros((*x.shape[:2], *result), np.int64)
    for plane in np.ndindex(*x.shape[:2]):
        for place in np.ndindex(*result):
            best = None
            for tap in itertools.product(*map(range, window)):
                axes = zip(place, strides, pads, tap, dilations, strict=True)
                at = tuple(p * s - b + t * d for p, s, b, t, d in axes)
                inside = all(0 <= a < n for a, n in zip(at, size, strict=True))
                if inside and (best is None or x[plane + at] > x[plane + best]):
                    best = at
            values[plane + place] = x[plane + best]
            inner = np.ravel_multi_index(best, size, order="F" if column_major else "C")
            positions[plane + place] = (plane[0] * x.shape[1] + plane[1]) * np.prod(size) + inner
    return values, positions


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("column_major", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_positions(case, column_major, element):
    size, window, strides, dilations, pads, result = case
    x = sample((2, 3, *size), element)
    storage = Storage()
    views = [storage.result((2, 3, *result), element), storage.result((2, 3, *result), ElementType.I64)]
    views.append(storage.add(x, padding=(0, 1, *(1 for _ in size))))
    found = check(PoolWithIndices(window, strides, dilations, column_major), views, storage, pads)
    for array, expected in zip(found.arrays, largest(x, case, column_major), strict=False):
        np.testing.assert_array_equal(array, expected)


def test_nan_is_larger_than_numbers():
    x = np.array([[[1, np.nan, 3, np.nan, -np.inf, -np.inf]]], np.float32)
    storage = Storage()
    views = [storage.result((1, 1, 3)), storage.result((1, 1, 3), ElementType.I64), storage.add(x)]
    values, positions = check(PoolWithIndices((2,), (2,), (1,)), views, storage, (0,)).arrays[:2]
    np.testing.assert_array_equal(values, [[[np.nan, np.nan, -np.inf]]])
    np.testing.assert_array_equal(positions, [[[1, 3, 4]]])
