"""Determinants as machine code against products of eigenvalues, singular and permuted matrices among them."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.lir import Determinant
from glowstone.types import ElementType

ELEMENTS = [ElementType.F32, ElementType.F64, ElementType.F16]


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 17])
def test_determinants(size, element):
    x = sample((5, size, size), element, -1, 1)
    if size > 1:
        x[1, :, 0] = 0
        x[2] = np.eye(size)[::-1]
    storage = Storage()
    views = [storage.result((5,), element), storage.add(x, padding=(1, 1, 2))]
    found = check(Determinant(), views, storage).arrays[0]
    expected = np.prod(np.linalg.eigvals(x.astype(np.float64)), axis=-1).real
    tolerance = {2: 2e-3, 4: 2e-7, 8: 1e-12}[element.size]
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))


def test_no_matrices():
    storage = Storage()
    check(Determinant(), [storage.result((0,)), storage.add(np.zeros((0, 3, 3), np.float32))], storage)


def test_numbers_that_are_not_finite():
    x = np.array([[[np.nan, 1], [2, 3]], [[1, 2], [np.nan, 4]]], np.float32)
    storage = Storage()
    found = check(Determinant(), [storage.result((2,)), storage.add(x)], storage).arrays[0]
    assert np.isnan(found).all()
