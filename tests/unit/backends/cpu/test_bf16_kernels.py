"""Kernels on bf16 against float64 on the same numbers: within a rounding of the result."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import make_view, run

from glowstone.lir import Convolution, Copy, Instruction, LayerNorm, MatMul, Reduce, Softmax
from glowstone.types import ElementType

BF16 = ElementType.BF16
HALF_UNIT = 2.0**-8
random = np.random.default_rng(8)


def to_float(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def sample(*shape):
    """Bits of bf16 numbers."""
    return (random.uniform(-4, 4, shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def result(operation, shape, *inputs, integers=()):
    made = [make_view(array, element=BF16) for array in (np.zeros(shape, np.uint16), *inputs)]
    instruction = Instruction(operation, tuple(view for view, _ in made), integers)
    return to_float(run(instruction, {view.buffer: flat for view, flat in made}).arrays[0])


def assert_rounded(found, exact):
    np.testing.assert_allclose(found, exact, rtol=HALF_UNIT, atol=HALF_UNIT * np.abs(exact).max() / 16)


def test_matmul():
    a, b = sample(5, 21), sample(21, 19)
    assert_rounded(result(MatMul(), (5, 19), a, b), to_float(a) @ to_float(b))


@pytest.mark.parametrize("shape", [(3, 37, 1), (4, 13, 9)], ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_reduce(mode, shape):
    x = sample(*shape)
    exact = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](to_float(x), axis=1)
    assert_rounded(result(Reduce(mode), (shape[0], shape[2]), x), exact)


@pytest.mark.parametrize("shape", [(3, 37, 1), (4, 13, 9)], ids=str)
def test_softmax(shape):
    x = sample(*shape)
    powers = np.exp(to_float(x) - to_float(x).max(axis=1, keepdims=True))
    assert_rounded(result(Softmax(), shape, x), powers / powers.sum(axis=1, keepdims=True))


def test_layer_norm():
    x, scale, bias = sample(4, 37), sample(4, 37), sample(4, 37)
    centred = to_float(x) - to_float(x).mean(axis=1, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * to_float(scale) + to_float(bias)
    assert_rounded(result(LayerNorm(1e-5), (4, 37), x, scale, bias), exact)


def test_convolution():
    x, w = sample(1, 3, 20), sample(4, 3, 5)
    windows = np.lib.stride_tricks.sliding_window_view(to_float(x), 5, axis=2)
    exact = np.einsum("niwk,oik->now", windows, to_float(w))
    assert_rounded(result(Convolution((1,), (1,), 1), (1, 4, 16), x, w, integers=(0,)), exact)


def test_copy():
    x = sample(13, 7)
    assert np.array_equal(result(Copy(), (13, 7), x), to_float(x))
