"""Reads and writes at places that data names: machine code against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, random, sample
from kernel_runner import run

from glowstone.lir import GatherElements, GatherND, Instruction, ScatterElements, ScatterND
from glowstone.table import STATUS_CODE, STATUS_VALUE, StatusCode
from glowstone.types import ElementType

F16, F32, F64, I8 = ElementType.F16, ElementType.F32, ElementType.F64, ElementType.I8
ELEMENTS = [F32, F64, F16, I8, ElementType.U64, ElementType.BOOL]
UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def places(shape, extent, dtype=np.int64):
    return random.integers(-extent, extent, shape).astype(dtype)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_elements(axis, element):
    for shape, count in [((3, 5, 7), 4), ((2, 3, 1), 9), ((40, 30, 20), 3), ((3, 4, 2), 0)]:
        storage = Storage()
        indices = places(tuple(count if place == axis else extent for place, extent in enumerate(shape)), shape[axis])
        x = sample(shape, element)
        views = [storage.result(indices.shape, element), storage.add(x, padding=(0, 1, 2)), storage.add(indices)]
        found = check(GatherElements(axis), views, storage)
        np.testing.assert_array_equal(found.arrays[0], np.take_along_axis(x, indices % shape[axis], axis))
        assert not found.status.any()


@pytest.mark.parametrize("length", [1, 3, 70])
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_gather_nd(element, length):
    storage = Storage()
    x = sample((2, 3, 4, length), element)
    indices = np.stack([places((2, 11), 3, np.int32), places((2, 11), 4, np.int32)], axis=-1)
    views = [storage.result((2, 11, length), element), storage.add(x), storage.add(indices)]
    found = check(GatherND(), views, storage)
    expected = x[np.arange(2)[:, None], indices[..., 0], indices[..., 1]]
    np.testing.assert_array_equal(found.arrays[0], expected)


@pytest.mark.parametrize("reduction", ["none", *UFUNCS])
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_scatter_elements_takes_equal_places_in_order(element, reduction):
    for axis, shape, box in [(0, (4, 6), (9, 5)), (1, (30, 3), (30, 8)), (0, (5,), (0,)), (1, (2, 3, 4), (2, 7, 3))]:
        storage = Storage()
        y, updates, indices = sample(shape, element), sample(box, element, 0.5, 1.5), places(box, shape[axis])
        expected = y.copy()
        for place in np.ndindex(*box):
            target = (*place[:axis], indices[place], *place[axis + 1 :])
            update = updates[place]
            expected[target] = update if reduction == "none" else UFUNCS[reduction](expected[target], update)
        views = [storage.add(array, padding=(1,) * len(shape)) for array in (y, indices, updates)]
        found = check(ScatterElements(axis, reduction), views, storage)
        np.testing.assert_array_equal(found.arrays[0], expected)


@pytest.mark.parametrize("reduction", ["none", *UFUNCS])
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_scatter_rows_takes_equal_places_in_order(element, reduction):
    for length in (1, 5, 300):
        storage = Storage()
        y, updates = sample((3, 2, length), element), sample((20, length), element, 0.5, 1.5)
        indices = np.stack([places(20, 3), places(20, 2)], axis=-1)
        expected = y.copy()
        for place, update in zip(indices, updates, strict=True):
            target = tuple(place)
            expected[target] = update if reduction == "none" else UFUNCS[reduction](expected[target], update)
        found = check(ScatterND(reduction), [storage.add(array) for array in (y, indices, updates)], storage)
        np.testing.assert_array_equal(found.arrays[0], expected)


@pytest.mark.parametrize("bad", [3, -4, 1 << 40, -(1 << 62)])
def test_bad_indices_are_reported_and_touch_nothing(bad):
    indices = np.array([[0], [bad], [1]])
    x, y, updates = sample((3, 4)), sample((3, 4)), sample((3, 4))
    kept = y.copy()
    kept[[0, 1]] = updates[[0, 2]]
    storage = Storage()
    rows = Instruction(ScatterND(), tuple(storage.add(array) for array in (y, indices, updates)))
    line = Instruction(ScatterElements(0), tuple(storage.add(array) for array in (y, indices, updates[:, :1])))
    picked = Instruction(GatherElements(0), (storage.result((3, 1)), storage.add(x[:, :1]), storage.add(indices)))
    tuples = Instruction(GatherND(), (storage.result((1, 3, 4)), storage.add(x[None]), storage.add(indices[None])))
    for instruction in (rows, line, picked, tuples):
        found = run(instruction, storage.arrays)
        assert found.status[STATUS_CODE] == StatusCode.INDEX_OUT_OF_RANGE
        assert found.status[STATUS_VALUE] == bad
    np.testing.assert_array_equal(run(rows, storage.arrays).arrays[0], kept)
    np.testing.assert_array_equal(run(picked, storage.arrays).arrays[0], x[[0, 0, 1], :1])
