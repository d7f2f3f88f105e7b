"""Positions of extrema, the largest so many, running sums: machine code against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, random, sample

from glowstone.lir import ArgReduce, Cumulative, TopK
from glowstone.types import ElementType

F16, F32, F64, I64 = ElementType.F16, ElementType.F32, ElementType.F64, ElementType.I64
ELEMENTS = [F32, F64, F16, ElementType.I32, ElementType.U8, I64, ElementType.U64, ElementType.I16]
SHAPES = [(3, 37, 1), (2, 5000, 1), (4, 13, 29), (1, 1, 1), (0, 3, 2), (2, 128, 8), (5, 3, 0)]


def repeated(shape, element):
    """Numbers of which many are equal."""
    low = 0 if not element.is_signed else -3
    return random.integers(low, 4, shape).astype(element.dtype)


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_position_of_extremum(element, mode, last):
    for shape in SHAPES:
        storage = Storage()
        x = repeated(shape, element)
        found = check(ArgReduce(mode, last), [storage.result(shape[::2], I64), storage.add(x)], storage).arrays[0]
        if x.size:
            best = (x.max if mode == "max" else x.min)(axis=1, keepdims=True)
            places = np.where(x == best, np.arange(shape[1])[None, :, None], -1 if last else shape[1])
            np.testing.assert_array_equal(found, places.max(axis=1) if last else places.min(axis=1))


@pytest.mark.parametrize("inner", [1, 7])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_nan_is_the_extremum(mode, inner):
    storage = Storage()
    x = sample((4, 60, inner))
    x[0, 5], x[0, 50], x[1, 59], x[2] = np.nan, np.nan, np.nan, np.nan
    for last, expected in ((False, [5, 59, 0]), (True, [50, 59, 59])):
        found = check(ArgReduce(mode, last), [storage.result((4, inner), I64), storage.add(x)], storage).arrays[0]
        assert (found[:3] == np.array(expected)[:, None]).all()


@pytest.mark.parametrize("largest", [True, False], ids=["largest", "smallest"])
@pytest.mark.parametrize("count", [1, 5, 16, 17, 100])
@pytest.mark.parametrize("element", [F32, F16, ElementType.U64, ElementType.I8], ids=str)
def test_top_k(element, count, largest):
    for shape in [(3, 100, 1), (2, 129, 3), (1, 1000, 1), (1, count, 1), (0, 100, 2)]:
        storage = Storage()
        x = repeated(shape, element)
        views = [storage.result((shape[0], count, shape[2]), kind) for kind in (element, I64)]
        values, positions, _ = check(TopK(largest), [*views, storage.add(x)], storage).arrays
        keys = x.astype(np.float64) * (-1 if largest else 1)
        order = np.argsort(keys, axis=1, kind="stable")[:, :count]
        np.testing.assert_array_equal(positions, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))


@pytest.mark.parametrize("count", [16, 17, 33])
def test_top_k_of_rows_in_order(count):
    """Each element beats all before it, or none does."""
    for step in (1, -1):
        storage = Storage()
        x = np.arange(500, dtype=np.float32)[::step].reshape(1, -1, 1)
        views = [storage.result((1, count, 1)), storage.result((1, count, 1), I64), storage.add(x)]
        values, _, _ = check(TopK(), views, storage).arrays
        np.testing.assert_array_equal(values.ravel(), np.arange(499, 499 - count, -1))


@pytest.mark.parametrize("count", [4, 40])
def test_top_k_takes_nan_for_the_largest(count):
    storage = Storage()
    x = sample((1, 40, 1))
    x[0, [3, 20]], x[0, 7] = np.nan, np.inf
    for largest in (True, False):
        views = [storage.result((1, count, 1)), storage.result((1, count, 1), I64), storage.add(x)]
        _, positions, _ = check(TopK(largest), views, storage).arrays
        if largest:
            assert positions[0, :3, 0].tolist() == [3, 20, 7]
        elif count == 40:
            assert positions[0, -3:, 0].tolist() == [7, 3, 20]


@pytest.mark.parametrize("exclusive", [False, True], ids=["inclusive", "exclusive"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("mode", ["sum", "prod"])
def test_cumulative(mode, reverse, exclusive):
    for element in (F32, F64, F16, ElementType.I32, ElementType.U64):
        for shape in [(3, 9, 1), (2, 11, 19), (1, 0, 3), (2, 1, 1)]:
            storage = Storage()
            x = sample(shape, element, -1.5, 1.5)
            operation = Cumulative(mode, exclusive, reverse)
            found = check(operation, [storage.result(shape, element), storage.add(x)], storage).arrays[0]
            wide = x.astype(np.float64) if element.is_float else x
            expected = np.empty_like(wide)
            for r in range(shape[1]):
                terms = wide[:, r + exclusive :] if reverse else wide[:, : r + 1 - exclusive]
                expected[:, r] = (terms.sum if mode == "sum" else terms.prod)(axis=1)
            tolerance = {F16: 2e-2, F32: 1e-5}.get(element, 1e-12)
            np.testing.assert_allclose(found, expected.astype(element.dtype), rtol=tolerance, atol=tolerance)


def test_cumulative_in_place():
    storage = Storage()
    x = sample((2, 30, 5))
    view = storage.add(x)
    found = check(Cumulative("sum"), [view, view], storage).arrays[0]
    np.testing.assert_allclose(found, np.cumsum(x.astype(np.float64), axis=1), rtol=1e-5, atol=1e-5)
