"""Matrix products and plain convolutions."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.backends.cpu.operations import PackedMatMul
from glowstone.backends.cpu.product_tile import panel_width
from glowstone.backends.cpu.target import Target
from glowstone.lir import BufferKind, Convolution, MatMul
from glowstone.scalar import Input, Literal, apply
from glowstone.types import ElementType

F16, F32, F64 = ElementType.F16, ElementType.F32, ElementType.F64
NUMBERS = [
    element for element in ElementType if element is not ElementType.BF16 and (element.is_float or element.is_integer)
]
PANEL = panel_width(Target.host())


def pack(weights, panel=PANEL):
    depth, columns = weights.shape
    panels = -(-columns // panel)
    padded = np.zeros((depth, panels * panel), weights.dtype)
    padded[:, :columns] = weights
    return np.ascontiguousarray(padded.reshape(depth, panels, panel).transpose(1, 0, 2))


def gelu_of_sum():
    x = apply("add", Input(F32, 0), Input(F32, 1))
    factor = apply("add", apply("erf", apply("mul", x, Literal(F32, 0.70710678))), Literal(F32, 1.0))
    return apply("mul", apply("mul", x, Literal(F32, 0.5)), factor)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 6, 7, 13, 200])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (0, 3), (33, 16), (40, 35), (7, 100)], ids=str)
def test_packed_matmul(rows, depth, columns):
    storage = Storage()
    a, weights = sample((rows, depth)), sample((depth, columns))
    views = [storage.result((rows, columns), padding=(0, 3)), storage.add(a, padding=(0, 2))]
    views.append(storage.add(pack(weights), kind=BufferKind.CONSTANT))
    found = check(PackedMatMul(), views, storage).arrays[0]
    np.testing.assert_allclose(found, a.astype(np.float64) @ weights, atol=1e-4)


@pytest.mark.parametrize("pad", [1, 2, 5])
def test_convolution_with_taps_that_see_padding_alone(pad):
    """Such a tap has no position to work on, and must not take a negative number for a large one."""
    storage = Storage()
    x, w = sample((1, 2, 3, 1)), sample((2, 1, 1, 3))
    y = storage.result((1, 2, 3, 1))
    found = check(Convolution((1, 1), (1, 1), 2), [y, storage.add(x), storage.add(w)], storage, (0, pad)).arrays[0]
    expected = x * w[:, 0, 0, pad].reshape(1, 2, 1, 1) if pad < 3 else np.zeros_like(x)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("panel", [8, 32, 64])
def test_other_panel_widths(panel):
    storage = Storage()
    a, weights = sample((11, 19)), sample((19, 70))
    views = [storage.result((11, 70)), storage.add(a), storage.add(pack(weights, panel))]
    found = check(PackedMatMul(), views, storage).arrays[0]
    np.testing.assert_allclose(found, a.astype(np.float64) @ weights, atol=1e-4)


@pytest.mark.parametrize("extra", [(1, 45), (13, 1), (13, 45), (1, 1)], ids=str)
def test_packed_matmul_with_epilogue(extra):
    storage = Storage()
    a, weights, bias = sample((13, 24)), sample((24, 45)), sample(extra)
    views = [storage.result((13, 45)), storage.add(a), storage.add(pack(weights))]
    views.append(storage.add(bias).broadcast((13, 45)))
    check(PackedMatMul(gelu_of_sum()), views, storage)


def test_packed_matmul_adds_in_place():
    storage = Storage()
    a, weights, residual = sample((23, 24)), sample((24, 45)), sample((23, 45))
    total = storage.add(residual)
    views = [total, storage.add(a), storage.add(pack(weights)), total]
    found = check(PackedMatMul(apply("add", Input(F32, 0), Input(F32, 1))), views, storage).arrays[0]
    np.testing.assert_allclose(found, a.astype(np.float64) @ weights + residual, atol=1e-4)


def test_nan_stays_in_its_row_and_column():
    storage = Storage()
    a, weights = sample((9, 20)), sample((20, 37))
    a[4, 3], weights[5, 36], weights[2, 7] = np.nan, np.inf, np.nan
    views = [storage.result((9, 37)), storage.add(a), storage.add(pack(weights))]
    found = check(PackedMatMul(), views, storage).arrays[0]
    with np.errstate(all="ignore"):
        assert (np.isnan(found) == np.isnan(a.astype(np.float64) @ weights)).all()


SHAPES = [(128, 32, 128), (7, 5, 19), (1, 33, 17), (13, 16, 1), (3, 0, 4), (0, 3, 4), (6, 8, 16), (20, 41, 50)]


@pytest.mark.parametrize("form", ["rows", "columns", "strided"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matmul(shape, form):
    rows, depth, columns = shape
    storage = Storage()
    a, b = sample((2, 3, rows, depth)), sample((2, 3, depth, columns))
    if form == "rows":
        right = storage.add(b)
    elif form == "columns":
        right = storage.add(np.ascontiguousarray(b.swapaxes(2, 3))).transpose((0, 1, 3, 2))
    else:
        right = storage.add(np.repeat(b, 2, axis=3)).slice((0,) * 4, b.shape, (1, 1, 1, 2))
    found = check(MatMul(), [storage.result((2, 3, rows, columns)), storage.add(a), right], storage).arrays[0]
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, atol=1e-3)


def test_matmul_as_in_attention():
    """Heads lie between rows and features; scores are scaled and masked in the epilogue."""
    storage = Storage()
    query, key, mask = sample((2, 19, 3, 32)), sample((2, 19, 3, 32)), sample((2, 1, 1, 19))
    scaled = apply("add", apply("mul", Input(F32, 0), Literal(F32, 0.125)), Input(F32, 1))
    shape = (2, 3, 19, 19)
    views = [
        storage.result(shape),
        storage.add(query).transpose((0, 2, 1, 3)),
        storage.add(key).transpose((0, 2, 3, 1)),
        storage.add(mask).broadcast(shape),
    ]
    found = check(MatMul(scaled), views, storage).arrays[0]
    reference = np.einsum("bqhd,bkhd->bhqk", query.astype(np.float64), key) * 0.125 + mask
    np.testing.assert_allclose(found, reference, atol=1e-4)


def test_matmul_broadcasts_batches():
    storage = Storage()
    a, b = sample((2, 1, 7, 9)), sample((1, 3, 9, 20))
    views = [storage.result((2, 3, 7, 20)), storage.add(a).broadcast((2, 3, 7, 9))]
    views.append(storage.add(b).broadcast((2, 3, 9, 20)))
    found = check(MatMul(), views, storage).arrays[0]
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, atol=1e-4)


def test_matmul_into_transposed_result():
    storage = Storage()
    a, b = sample((7, 9)), sample((9, 20))
    views = [storage.result((20, 7)).transpose((1, 0)), storage.add(a), storage.add(b)]
    found = check(MatMul(), views, storage).arrays[0]
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, atol=1e-4)


@pytest.mark.parametrize("element", NUMBERS, ids=str)
def test_matmul_of_every_element_type(element):
    storage = Storage()
    a, b, extra = sample((5, 21), element), sample((21, 19), element), sample((1, 19), element)
    views = [storage.result((5, 19), element), storage.add(a), storage.add(b), storage.add(extra).broadcast((5, 19))]
    found = check(MatMul(apply("add", Input(element, 0), Input(element, 1))), views, storage).arrays[0]
    if not element.is_float:
        assert np.array_equal(found, (a @ b + extra).astype(element.dtype))


CONVOLUTIONS = {
    "1d": ((2, 4, 23), (6, 4, 3), (1,), (1,), (1,), 1),
    "1d strided": ((1, 4, 40), (6, 2, 5), (2,), (3,), (4,), 2),
    "2d": ((2, 3, 9, 11), (4, 3, 3, 3), (2, 1), (1, 2), (1, 0), 1),
    "3d": ((1, 6, 5, 6, 7), (6, 2, 2, 3, 3), (1, 2, 2), (1, 1, 1), (1, 1, 1), 3),
    "window larger than input": ((1, 2, 1, 1), (3, 2, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "far outside": ((1, 1, 3), (1, 1, 3), (1,), (4,), (9,), 1),
    "no images": ((0, 2, 5), (3, 2, 3), (1,), (1,), (0,), 1),
}


@pytest.mark.parametrize("element", [F16, F32, F64, ElementType.I32, ElementType.I8], ids=str)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_plain_convolution(name, element):
    source, kernel, strides, dilations, pads, groups = CONVOLUTIONS[name]
    spatial = tuple(
        (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
        for size, taps, stride, dilation, pad in zip(source[2:], kernel[2:], strides, dilations, pads, strict=True)
    )
    shape = (source[0], kernel[0], *spatial)
    storage = Storage()
    x, w = sample(source, element), sample(kernel, element)
    bias = sample((1, kernel[0], *(1 for _ in spatial)), element)
    views = [storage.result(shape, element), storage.add(x, padding=(0, 1, *(0 for _ in spatial))), storage.add(w)]
    views.append(storage.add(bias).broadcast(shape))
    epilogue = apply("add", Input(element, 0), Input(element, 1))
    check(Convolution(strides, dilations, groups, epilogue), views, storage, pads)


def test_plain_convolution_against_direct_sums():
    storage = Storage()
    x, w = sample((1, 2, 6, 7)), sample((3, 2, 3, 3))
    views = [storage.result((1, 3, 6, 7)), storage.add(x), storage.add(w)]
    found = check(Convolution((1, 1), (1, 1), 1), views, storage, (1, 1)).arrays[0]
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    np.testing.assert_allclose(found, np.einsum("nihwkl,oikl->nohw", windows, w), atol=1e-4)
