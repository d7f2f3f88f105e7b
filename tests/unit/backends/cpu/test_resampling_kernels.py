"""Weighted sums at places that a table names: machine code against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, random, sample

from glowstone.lir import Resample
from glowstone.lir.operations.resampling import weight_type
from glowstone.types import ElementType

F16, F32, F64, I32 = ElementType.F16, ElementType.F32, ElementType.F64, ElementType.I32
SHAPES = [(2, 3, 5, 1), (1, 2, 4, 37), (1, 1, 300, 1), (2, 2, 3, 8), (1, 0, 2, 3), (1, 2, 0, 3)]


@pytest.mark.parametrize("taps", [1, 2, 5])
@pytest.mark.parametrize("element", [F32, F64, F16, I32], ids=str)
def test_resample(element, taps):
    for batch, channels, places, inner in SHAPES:
        storage = Storage()
        x = sample((batch, channels, 7, inner), element)
        indices = random.integers(-2, 9, (batch, places, taps))
        weights = sample((batch, places, taps), weight_type(element), -1, 1)
        views = [
            storage.result((batch, channels, places, inner), element),
            storage.add(x, padding=(0, 0, 1, 2)),
            storage.add(indices),
            storage.add(weights),
        ]
        found = check(Resample(), views, storage).arrays[0]
        inside = np.where((indices >= 0) & (indices < 7), weights, 0).astype(np.float64)
        picked = x.astype(np.float64)[np.arange(batch)[:, None, None], :, np.clip(indices, 0, 6)]
        expected = np.einsum("npt,nptci->ncpi", inside, picked)
        tolerance = 8 * taps * (np.finfo(element.dtype).eps if element.is_float else 0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=4 * float(tolerance))


def test_an_index_outside_adds_nothing_even_to_infinities():
    storage = Storage()
    x = np.array([[[[np.inf], [2.0]]]], np.float32)
    indices = np.array([[[-1, 1, 2, 1 << 40, -(1 << 62)]]])
    weights = np.full((1, 1, 5), 3, np.float32)
    views = [storage.result((1, 1, 1, 1)), storage.add(x), storage.add(indices), storage.add(weights)]
    assert check(Resample(), views, storage).arrays[0].item() == 6
