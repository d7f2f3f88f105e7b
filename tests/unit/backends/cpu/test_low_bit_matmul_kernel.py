"""Products with packed weights as machine code against numbers taken from their bytes one by one."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.lir import LowBitMatMul
from glowstone.types import ElementType

RANDOM = np.random.default_rng(5)


def numbers(weights: np.ndarray, bits: int) -> np.ndarray:
    """The packed numbers [N, blocks, block], by way of text."""
    text = [[["".join(f"{byte:08b}"[::-1] for byte in block)] for block in row] for row in weights]
    split = [[[int(b[0][i : i + bits][::-1], 2) for i in range(0, len(b[0]), bits)] for b in row] for row in text]
    return np.array(split, np.float64)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
@pytest.mark.parametrize(
    ("columns", "depth", "block"), [(1, 16, 16), (4, 15, 16), (5, 33, 16), (9, 96, 32), (6, 70, 64)]
)
def test_products(bits, rows, columns, depth, block):
    blocks = -(-depth // block)
    a = sample((rows, depth), ElementType.F32, -1, 1)
    weights = RANDOM.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8)
    scales = RANDOM.uniform(-1, 1, (columns, blocks)).astype(np.float32)
    zeros = RANDOM.uniform(0, 2**bits, (columns, blocks)).astype(np.float32)
    storage = Storage()
    views = [storage.result((rows, columns)), storage.add(a), storage.add(weights)]
    views += [storage.add(scales, padding=(1, 2)), storage.add(zeros, padding=(0, 1))]
    found = check(LowBitMatMul(bits, block), views, storage).arrays[0]
    meant = (numbers(weights, bits) - zeros[..., None]) * scales[..., None]
    expected = a.astype(np.float64) @ meant.reshape(columns, -1)[:, :depth].T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


def test_what_the_last_block_has_behind_the_depth_counts_for_nothing():
    weights = RANDOM.integers(0, 256, (3, 1, 16), np.uint8)
    a, ones = sample((2, 5), ElementType.F32, -1, 1), np.ones((3, 1), np.float32)
    results = []
    for filled in (0, 255):
        given = weights.copy()
        given[..., 3:] = filled
        given[..., 2] = given[..., 2] & 15 | filled & 240
        storage = Storage()
        views = [storage.result((2, 3)), *(storage.add(array) for array in (a, given, ones, ones))]
        results.append(check(LowBitMatMul(4, 32), views, storage).arrays[0].copy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(("rows", "columns", "depth"), [(0, 3, 20), (2, 0, 20), (2, 3, 0)])
def test_nothing_to_do(rows, columns, depth):
    blocks = -(-depth // 32)
    storage = Storage()
    views = [storage.result((rows, columns)), storage.add(np.zeros((rows, depth), np.float32))]
    views += [storage.add(np.zeros((columns, blocks, 16), np.uint8))]
    views += [storage.add(np.zeros((columns, blocks), np.float32)) for _ in range(2)]
    check(LowBitMatMul(4, 32), views, storage)
