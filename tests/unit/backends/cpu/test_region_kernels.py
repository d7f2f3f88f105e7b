"""Pooling over regions: machine code against the meaning, and what happens with strange regions."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, random, sample
from kernel_runner import run

from glowstone.lir import Instruction
from glowstone.lir.operations.regions import RoiAlign, RoiPool
from glowstone.table import STATUS_CODE, STATUS_VALUE, StatusCode
from glowstone.types import ElementType

F16, F32, F64 = ElementType.F16, ElementType.F32, ElementType.F64


def regions(count, element):
    """Corners inside and outside of an image of 7 by 6, some the wrong way round."""
    return random.uniform(-3, 10, (count, 4)).astype(element.dtype)


@pytest.mark.parametrize("points", [0, 3])
@pytest.mark.parametrize("half_pixel", [False, True])
@pytest.mark.parametrize("mode", ["average", "max"])
@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_align(element, mode, half_pixel, points):
    for count, cells in [(9, (2, 3)), (1, (1, 1)), (0, (2, 2))]:
        storage = Storage()
        views = [
            storage.result((count, 3, *cells), element),
            storage.add(sample((2, 3, 7, 6), element)),
            storage.add(regions(count, element)),
            storage.add(random.integers(-2, 2, count)),
        ]
        check(RoiAlign(mode, half_pixel, points, 0.75), views, storage)


@pytest.mark.parametrize("element", [F32, F64, F16], ids=str)
def test_pool(element):
    storage = Storage()
    boxes = np.concatenate([random.integers(0, 2, (20, 1)), regions(20, ElementType.F32)], axis=1)
    boxes = np.round(boxes * 4) / 4  # no rounding of coordinates in float16
    views = [
        storage.result((20, 3, 4, 2), element),
        storage.add(sample((2, 3, 7, 6), element)),
        storage.add(boxes.astype(element.dtype)),
    ]
    check(RoiPool(0.5), views, storage)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf, 1e30])
def test_strange_corners_stay_within_the_image(strange):
    storage = Storage()
    corners = np.array([[0, 0, strange, 3], [strange, 1, 2, 2], [strange] * 4], np.float32)
    aligned = Instruction(
        RoiAlign("average", True, 2, 1.0),
        (
            storage.result((3, 1, 2, 2)),
            storage.add(sample((1, 1, 3, 4))),
            storage.add(corners),
            storage.add(np.zeros(3, np.int64)),
        ),
    )
    boxes = np.concatenate([np.zeros((3, 1), np.float32), corners], axis=1)
    pooled = Instruction(
        RoiPool(1.0), (storage.result((3, 1, 2, 2)), storage.add(sample((1, 1, 3, 4))), storage.add(boxes))
    )
    for instruction in (aligned, pooled):
        assert not run(instruction, storage.arrays).status.any()


def test_an_image_out_of_range_is_reported():
    storage = Storage()
    x, corners = sample((2, 1, 3, 3)), np.ones((2, 4), np.float32)
    views = (storage.result((2, 1, 1, 1)), storage.add(x), storage.add(corners), storage.add(np.array([1, -3])))
    boxes = storage.add(np.array([[0, 1, 1, 2, 2], [5, 1, 1, 2, 2]], np.float32))
    pooled = Instruction(RoiPool(1.0), (storage.result((2, 1, 1, 1)), storage.add(x), boxes))
    for instruction, bad in ((Instruction(RoiAlign("max", True, 1, 1.0), views), -3), (pooled, 5)):
        found = run(instruction, storage.arrays)
        assert found.status[STATUS_CODE] == StatusCode.INDEX_OUT_OF_RANGE
        assert found.status[STATUS_VALUE] == bad
