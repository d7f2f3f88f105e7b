"""Pooling as machine code, blocked and plain, against windows cut out one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from blocked_layout import random
from kernel_runner import run_operation

from glowstone.backends.cpu.target import Target
from glowstone.lir import Pool

# batch, channels, size, window, strides, dilations, pads before, pads after
CASES = [
    (1, 1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0)),
    (2, 3, (9, 13), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    (1, 2, (8, 7), (2, 3), (1, 2), (2, 1), (0, 2), (1, 0)),
    (1, 2, (7, 7), (7, 7), (1, 1), (1, 1), (0, 0), (0, 0)),  # too large to unroll
    (1, 2, (3, 3), (5, 7), (1, 1), (1, 1), (2, 3), (2, 3)),
    (2, 2, (11,), (3,), (2,), (1,), (1,), (1,)),
    (1, 2, (4, 5, 6), (2, 2, 3), (1, 2, 1), (1, 1, 2), (1, 0, 1), (0, 1, 1)),
    (0, 2, (4, 4), (2, 2), (1, 1), (1, 1), (0, 0), (0, 0)),
]
LANES = Target.host().channel_block


def windows(case, lanes):
    """Output shape, and for every output position the slices of the input and the size of the padded window."""
    batch, channels, size, window, strides, dilations, before, after = case
    axes = []
    for n, k, s, d, low, high in zip(size, window, strides, dilations, before, after, strict=True):
        count = (n + low + high - (k - 1) * d - 1) // s + 1
        taps = [[o * s - low + t * d for t in range(k)] for o in range(count)]
        axes.append([([p for p in row if 0 <= p < n], sum(p < n + high for p in row)) for row in taps])
    shape = (batch, channels, *map(len, axes), *lanes)
    positions = itertools.product(*(enumerate(axis) for axis in axes))
    return shape, [(tuple(i for i, _ in place), [taps for _, taps in place]) for place in positions]


def expected(x, case, lanes, mode, include):
    shape, positions = windows(case, lanes)
    y = np.zeros(shape)
    for place, taps in positions:
        part = x[:, :, *np.ix_(*(inside for inside, _ in taps))].astype(np.float64)
        axes = tuple(range(2, 2 + len(place)))
        if mode == "max":
            y[:, :, *place] = part.max(axes, initial=-np.inf)
        elif mode == "sum":
            y[:, :, *place] = part.sum(axes)
        else:
            size = np.prod([padded if include else len(inside) for inside, padded in taps])
            y[:, :, *place] = part.sum(axes) / max(size, 1)
    return y


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(
    ("mode", "include", "blocked"),
    [
        ("max", False, True),
        ("max", False, False),
        ("average", False, True),
        ("average", True, False),
        ("sum", False, True),
    ],
)
def test_float32(case, mode, include, blocked):
    batch, channels, size, window, strides, dilations, before, after = case
    lanes = (LANES,) if blocked else ()
    x = random(batch, channels, *size, *lanes)
    want = expected(x, case, lanes, mode, include)
    operation = Pool(mode, window, strides, dilations, include, blocked)
    integers = (*before, *after) if include else before
    result = run_operation(operation, [np.full(want.shape, np.nan, np.float32), x], integers)
    np.testing.assert_allclose(result.arrays[0], want, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.uint8, np.int32, np.int64])
def test_largest_of_other_types(dtype):
    case = CASES[1]
    x = (np.arange(2 * 3 * 9 * 13) * 37 % 251 - (120 if np.dtype(dtype).kind != "u" else 0)).astype(dtype)
    x = x.reshape(2, 3, 9, 13)
    want = expected(x, case, (), "max", False)
    operation = Pool("max", *case[3:6])
    result = run_operation(operation, [np.zeros(want.shape, dtype), x], case[6])
    np.testing.assert_array_equal(result.arrays[0], want.astype(dtype))


def test_nan_wins():
    x = random(1, 1, 6, 6)
    x[0, 0, 2, 2] = np.nan
    operation = Pool("max", (3, 3), (1, 1), (1, 1))
    result = run_operation(operation, [np.zeros((1, 1, 4, 4), np.float32), x], (0, 0))
    want = np.zeros((4, 4), bool)
    want[0:3, 0:3] = True
    np.testing.assert_array_equal(np.isnan(result.arrays[0][0, 0]), want)
