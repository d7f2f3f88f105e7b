"""Reductions, softmax, layer normalization and gather."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, random, sample
from kernel_runner import run

from glowstone.lir import Gather, Instruction, LayerNorm, Reduce, Softmax
from glowstone.scalar import Input, Literal, apply
from glowstone.table import STATUS_CODE, STATUS_UNIT, STATUS_VALUE, StatusCode
from glowstone.types import ElementType

F16, F32, F64 = ElementType.F16, ElementType.F32, ElementType.F64
NUMBERS = [
    element for element in ElementType if element is not ElementType.BF16 and (element.is_float or element.is_integer)
]
SHAPES = [(3, 37, 1), (1, 9001, 1), (4, 13, 29), (2, 300, 8), (1, 1, 1), (5, 1, 17), (0, 3, 2), (3, 64, 16)]
NUMPY = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


@pytest.mark.parametrize("element", NUMBERS, ids=str)
@pytest.mark.parametrize("mode", NUMPY)
def test_reduce(mode, element):
    for shape in SHAPES:
        storage = Storage()
        if mode == "prod" and element.is_float:
            x = sample(shape, element, 0.9, 1.1) if shape[1] < 400 else np.ones(shape, element.dtype)
        else:
            x = sample(shape, element)
        views = [storage.result((shape[0], shape[2]), element), storage.add(x)]
        found = check(Reduce(mode), views, storage).arrays[0]
        if element.is_float:
            exact = NUMPY[mode](x.astype(np.float64), axis=1)
            np.testing.assert_allclose(found, exact, rtol=float(64 * np.finfo(element.dtype).eps), atol=2e-3)


@pytest.mark.parametrize("shape", [(3, 0, 1), (3, 0, 5)], ids=str)
def test_reduce_of_nothing(shape):
    for mode, value in {"sum": 0.0, "prod": 1.0, "mean": np.nan, "max": -np.inf, "min": np.inf}.items():
        storage = Storage()
        views = [storage.result((shape[0], shape[2])), storage.add(np.zeros(shape, np.float32))]
        found = check(Reduce(mode), views, storage).arrays[0]
        assert np.array_equal(found, np.full_like(found, value), equal_nan=True)


@pytest.mark.parametrize("inner", [1, 11])
def test_reduce_propagates_nan(inner):
    x = sample((4, 50, inner))
    x[1, 17], x[2, 3], x[3, 49] = np.nan, np.inf, -np.inf
    for mode, function in NUMPY.items():
        storage = Storage()
        with np.errstate(all="ignore"):
            found = check(Reduce(mode), [storage.result((4, inner)), storage.add(x)], storage).arrays[0]
            assert (np.isnan(found) == np.isnan(function(x.astype(np.float64), axis=1))).all()


def test_long_sum_is_accurate():
    storage = Storage()
    x = random.uniform(0, 1, (1, 3_000_001, 1)).astype(np.float32)
    found = check(Reduce("sum"), [storage.result((1, 1)), storage.add(x)], storage).arrays[0]
    np.testing.assert_allclose(found, x.astype(np.float64).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("inner", [1, 19])
def test_reduce_with_epilogue(inner):
    storage = Storage()
    x, scale = sample((6, 23, inner)), sample((6, 1))
    epilogue = apply("mul", apply("sqrt", apply("abs", Input(F32, 0))), Input(F32, 1))
    views = [storage.result((6, inner)), storage.add(x), storage.add(scale).broadcast((6, inner))]
    found = check(Reduce("mean", epilogue), views, storage).arrays[0]
    np.testing.assert_allclose(found, np.sqrt(np.abs(x.astype(np.float64).mean(axis=1))) * scale, rtol=1e-4)


def test_reduce_rows_with_gaps():
    storage = Storage()
    views = [storage.result((4, 5)), storage.add(sample((4, 9, 5)), padding=(0, 2, 3))]
    check(Reduce("max"), views, storage)


def reference_softmax(x):
    with np.errstate(all="ignore"):
        powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("element", [F16, F32, F64], ids=str)
@pytest.mark.parametrize("shape", [(3, 37, 1), (2, 5000, 1), (4, 13, 29), (1, 1, 1), (0, 3, 2), (2, 128, 8)], ids=str)
def test_softmax(shape, element):
    storage = Storage()
    x = sample(shape, element, -30, 30)
    found = check(Softmax(), [storage.result(shape, element), storage.add(x)], storage).arrays[0]
    np.testing.assert_allclose(found, reference_softmax(x), rtol=2e-3 if element is F16 else 2e-5, atol=1e-7)


@pytest.mark.parametrize("inner", [1, 9])
def test_softmax_in_place_with_special_values(inner):
    x = sample((6, 45, inner))
    x[1, 4], x[2, 7], x[3, :], x[4, 3], x[5, :] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    storage = Storage()
    view = storage.add(x)
    found = check(Softmax(), [view, view], storage).arrays[0]
    reference = reference_softmax(x)
    assert (np.isnan(found) == np.isnan(reference)).all()
    np.testing.assert_allclose(found, reference, rtol=2e-5)


@pytest.mark.parametrize("element", [F16, F32, F64], ids=str)
@pytest.mark.parametrize("shape", [(3, 37), (128, 384), (1, 1), (0, 5), (2, 5003)], ids=str)
def test_layer_norm(shape, element):
    storage = Storage()
    x, scale, bias = sample(shape, element), sample(shape[1:], element), sample(shape[1:], element)
    views = [storage.result(shape, element), storage.add(x)]
    views += [storage.add(scale[None]).broadcast(shape), storage.add(bias[None]).broadcast(shape)]
    found = check(LayerNorm(1e-5), views, storage).arrays[0]
    wide = x.astype(np.float64)
    if x.size:
        centred = wide - wide.mean(axis=1, keepdims=True)
        reference = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale + bias
        np.testing.assert_allclose(found, reference, atol=2e-2 if element is F16 else 2e-5)


def test_layer_norm_of_large_mean_in_place():
    storage = Storage()
    x = (1000 + random.standard_normal((5, 384))).astype(np.float32)
    view = storage.add(x, padding=(0, 16))
    ones, zeros = (storage.add(np.full((1, 384), value, np.float32)).broadcast((5, 384)) for value in (1, 0))
    found = check(LayerNorm(1e-5), [view, view, ones, zeros], storage, bound=1024).arrays[0]
    centred = x.astype(np.float64) - x.astype(np.float64).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found, centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5), atol=2e-3)


@pytest.mark.parametrize("indices", [ElementType.I32, ElementType.I64], ids=str)
@pytest.mark.parametrize("element", [ElementType.U8, F16, F32, ElementType.I64], ids=str)
@pytest.mark.parametrize("shape", [(1, 11, 37), (3, 11, 1), (2, 11, 8), (1, 11, 0), (0, 11, 3)], ids=str)
def test_gather(shape, element, indices):
    storage = Storage()
    x, picks = sample(shape, element), np.array([0, -1, 10, -11, 3, 3], indices.dtype)
    views = [storage.result((shape[0], 6, shape[2]), element), storage.add(x), storage.add(picks)]
    found = check(Gather(), views, storage)
    assert np.array_equal(found.arrays[0], x[:, picks])
    assert not found.status.any()


def test_gather_reports_the_first_bad_index_and_reads_element_0():
    storage = Storage()
    x, picks = sample((1, 5, 1000)), np.arange(400) % 5
    picks[[77, 200, 201]] = 5, -6, 1 << 40
    instruction = Instruction(
        Gather(), (storage.result((1, 400, 1000)), storage.add(x), storage.add(picks.astype(np.int64)))
    )
    forward = run(instruction, storage.arrays, unit_order=range)
    backward = run(instruction, storage.arrays, unit_order=lambda units: range(units - 1, -1, -1))
    assert forward.call.units > 2
    for found in (forward, backward):
        assert found.status[STATUS_CODE] == StatusCode.INDEX_OUT_OF_RANGE
        assert found.status[STATUS_VALUE] == 5
        assert np.array_equal(found.arrays[0][0, 200], x[0, 0])
    assert forward.status[STATUS_UNIT] == backward.status[STATUS_UNIT]


def test_gather_from_nothing_is_an_error():
    storage = Storage()
    views = (storage.result((1, 2, 3)), storage.add(sample((1, 0, 3))), storage.add(np.zeros(2, np.int64)))
    found = run(Instruction(Gather(), views), storage.arrays)
    assert found.status[STATUS_CODE] == StatusCode.INDEX_OUT_OF_RANGE


def test_literal_in_epilogue():
    storage = Storage()
    x = sample((2, 16, 1), ElementType.I32)
    epilogue = apply("add", Input(ElementType.I32, 0), Literal(ElementType.I32, 5))
    views = [storage.result((2, 1), ElementType.I32), storage.add(x)]
    found = check(Reduce("sum", epilogue), views, storage).arrays[0]
    assert np.array_equal(found, x.sum(axis=1) + 5)
