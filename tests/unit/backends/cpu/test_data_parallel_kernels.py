"""Elementwise, copy and fill kernels over odd shapes, strides and element types."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.lir import Copy, Elementwise, Fill
from glowstone.scalar import Input, Literal, apply, cast
from glowstone.types import ElementType

F32, BOOL, I64 = ElementType.F32, ElementType.BOOL, ElementType.I64
SHAPES = [(), (1,), (0,), (7,), (64,), (1031,), (3, 5), (2, 0, 4), (5, 1, 7), (2, 3, 4, 5, 17), (3, 2, 1, 2, 2, 2, 9)]


def product_plus_one(element=F32):
    total = apply("mul", Input(element, 0), Input(element, 1))
    return apply("add", total, Literal(element, 1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_contiguous(shape):
    storage = Storage()
    x, y = sample(shape), sample(shape)
    views = [storage.result(shape), storage.add(x), storage.add(y)]
    found = check(Elementwise((product_plus_one(),), 2), views, storage)
    np.testing.assert_allclose(found.arrays[0], x.astype(np.float64) * y + 1, rtol=1e-6, atol=1e-6)


def test_rows_with_gaps_are_left_alone():
    storage = Storage()
    padding = (0, 3, 5)
    views = [storage.result((4, 5, 37), padding=padding), storage.add(sample((4, 5, 37)), padding=padding)]
    check(Elementwise((apply("exp", Input(F32, 0)),), 1), views, storage)


@pytest.mark.parametrize("small", [(1, 1, 1), (4, 1, 1), (1, 5, 1), (1, 1, 37), (4, 5, 1), (4, 1, 37)], ids=str)
def test_broadcast(small):
    storage = Storage()
    shape = (4, 5, 37)
    x, y = sample(shape), sample(small)
    views = [storage.result(shape), storage.add(x), storage.add(y).broadcast(shape)]
    found = check(Elementwise((product_plus_one(),), 2), views, storage)
    np.testing.assert_allclose(found.arrays[0], x.astype(np.float64) * y + 1, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("permutation", [(0, 2, 1), (2, 1, 0), (1, 2, 0)], ids=str)
def test_transposed_operands(permutation):
    storage = Storage()
    x, y = sample((11, 13, 19)), sample((11, 13, 19))
    shape = tuple(x.shape[axis] for axis in permutation)
    views = [
        storage.result(shape),
        storage.add(x).transpose(permutation),
        storage.add(y.transpose(permutation)),
    ]
    found = check(Elementwise((product_plus_one(),), 2), views, storage)
    np.testing.assert_allclose(
        found.arrays[0], (x.astype(np.float64) * y + 1).transpose(permutation), rtol=1e-6, atol=1e-6
    )


def test_transposed_result():
    storage = Storage()
    x = sample((11, 13))
    views = [storage.result((13, 11)).transpose((1, 0)), storage.add(x)]
    found = check(Elementwise((apply("neg", Input(F32, 0)),), 1), views, storage)
    assert np.array_equal(found.arrays[0], -x)


def test_every_second_element():
    storage = Storage()
    x = sample((6, 41))
    views = [storage.result((6, 21)), storage.add(x).slice((0, 0), (6, 21), (1, 2))]
    found = check(Elementwise((apply("abs", Input(F32, 0)),), 1), views, storage)
    assert np.array_equal(found.arrays[0], np.abs(x[:, ::2]))


@pytest.mark.parametrize("shape", [(3, 41), (4096,), (70, 1000)], ids=str)
def test_in_place(shape):
    storage = Storage()
    x, y = sample(shape), sample(shape)
    view = storage.add(x)
    found = check(Elementwise((product_plus_one(),), 2), [view, view, storage.add(y)], storage)
    np.testing.assert_allclose(found.arrays[0], x.astype(np.float64) * y + 1, rtol=1e-6, atol=1e-6)


def test_several_outputs_in_place():
    storage = Storage()
    x, y = sample((5, 37)), sample((5, 37))
    first, second = storage.add(x), storage.add(y)
    swap = Elementwise((Input(F32, 1), Input(F32, 0)), 2)
    found = check(swap, [first, second, first, second], storage)
    assert np.array_equal(found.arrays[0], y)
    assert np.array_equal(found.arrays[1], x)


def test_mixed_element_types():
    storage = Storage()
    x, condition, index = sample((5, 77)), sample((5, 77), BOOL), sample((5, 77), I64)
    chosen = apply("select", Input(BOOL, 1), Input(F32, 0), cast(Input(I64, 2), F32))
    less = apply("less", Input(F32, 0), Literal(F32, 0.5))
    views = [storage.result((5, 77)), storage.result((5, 77), BOOL)]
    views += [storage.add(x), storage.add(condition), storage.add(index)]
    found = check(Elementwise((chosen, less), 3), views, storage)
    assert np.array_equal(found.arrays[0], np.where(condition, x, index.astype(np.float32)))
    assert np.array_equal(found.arrays[1], x < 0.5)


def test_unused_input_is_not_read():
    storage = Storage()
    x = sample((9, 9))
    views = [storage.result((9, 9)), storage.add(x), storage.add(x)]
    found = check(Elementwise((Input(F32, 1),), 2), views, storage)
    assert np.array_equal(found.arrays[0], x)


def test_nan_and_infinity_pass_through():
    storage = Storage()
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0] * 7, np.float32)
    views = [storage.result(x.shape), storage.add(x)]
    clip = apply("min", apply("max", Input(F32, 0), Literal(F32, -3.0)), Literal(F32, 3.0))
    found = check(Elementwise((clip,), 1), views, storage)
    assert np.array_equal(found.arrays[0], np.clip(x, -3, 3), equal_nan=True)


COPIES = {
    "contiguous": ((5, 77), (0, 1)),
    "transpose": ((37, 29), (1, 0)),
    "outer transpose": ((3, 4, 41), (1, 0, 2)),
    "inner transpose": ((3, 40, 23), (0, 2, 1)),
    "reversed": ((9, 10, 11), (2, 1, 0)),
    "to blocked": ((2, 3, 8, 5, 7), (0, 1, 3, 4, 2)),
    "from blocked": ((2, 3, 5, 7, 8), (0, 1, 4, 2, 3)),
    "empty": ((3, 0, 2), (2, 1, 0)),
    "single": ((1, 1), (1, 0)),
    "large": ((300, 257), (1, 0)),
}


@pytest.mark.parametrize("element", ElementType, ids=str)
@pytest.mark.parametrize("name", COPIES)
def test_copy_permutes(name, element):
    shape, permutation = COPIES[name]
    storage = Storage()
    x = sample(shape, element)
    target = storage.result(tuple(shape[axis] for axis in permutation), element)
    found = check(Copy(), [target, storage.add(x).transpose(permutation)], storage)
    assert found.arrays[0].tobytes() == x.transpose(permutation).tobytes()


def test_copy_into_part_of_a_buffer():
    storage = Storage()
    x = sample((3, 8, 10))
    target = storage.result((3, 20, 12)).slice((0, 5, 1), (3, 8, 10))
    check(Copy(), [target, storage.add(x)], storage)


def test_copy_pads_channels_of_a_partial_block():
    storage = Storage()
    x = sample((2, 3, 35))
    lanes = storage.result((2, 35, 8)).slice((0, 0, 0), (2, 35, 3))
    found = check(Copy(), [lanes, storage.add(x).transpose((0, 2, 1))], storage)
    assert np.array_equal(found.arrays[0], x.transpose(0, 2, 1))


@pytest.mark.parametrize("small", [(1, 1), (1, 37), (6, 1)], ids=str)
def test_copy_broadcasts(small):
    storage = Storage()
    x = sample(small)
    found = check(Copy(), [storage.result((6, 37)), storage.add(x).broadcast((6, 37))], storage)
    assert np.array_equal(found.arrays[0], np.broadcast_to(x, (6, 37)))


def test_copy_keeps_every_bit_of_nan():
    storage = Storage()
    bits = np.arange(0x7F800000, 0x7F800000 + 77, dtype=np.uint32)
    found = check(Copy(), [storage.result((77,)), storage.add(bits.view(np.float32))], storage)
    assert np.array_equal(found.arrays[0].view(np.uint32), bits)


@pytest.mark.parametrize("element", ElementType, ids=str)
def test_fill(element):
    storage = Storage()
    value = np.array(1, element.dtype)
    target = storage.result((5, 40), element).slice((1, 2), (3, 37))
    found = check(Fill(int.from_bytes(value.tobytes(), "little")), [target], storage)
    assert (found.arrays[0] == value).all()


def test_units_follow_from_extents():
    storage = Storage()
    x = sample((64, 4099))
    views = [storage.result(x.shape), storage.add(x)]
    found = check(Elementwise((apply("exp", Input(F32, 0)),), 1), views, storage)
    assert found.call.units > 1
