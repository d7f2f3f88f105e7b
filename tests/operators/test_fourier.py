"""Fourier transforms as machine code: every way that they are computed, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy.signal import ShortTimeFFT

import glowstone

random = np.random.default_rng(83)


def model_of(kind, attributes, shape, numbers=(), opset=20, element=TensorProto.FLOAT):
    """One node: the signal is an input, what decides shapes constants; None leaves one out."""
    names = ["" if number is None else f"n{index}" for index, number in enumerate(numbers)]
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", *names], ["y"], **attributes)],
        "transform",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", element, None)],
        [
            numpy_helper.from_array(np.asarray(number), name)
            for number, name in zip(numbers, names, strict=True)
            if name
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def assert_same(found, expected, tolerance=2e-6):
    """Within `tolerance` of the largest value."""
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def pairs(array):
    return np.stack([array.real, array.imag], -1)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("count", [2, 128, 144, 211, 400, 521, 1024, 1042, 4096])
def test_every_length(count, parts):
    x = random.standard_normal((2, count, parts)).astype(np.float32)
    model = glowstone.compile(model_of("DFT", {}, ["n", count, parts]))
    assert_same(model(x), pairs(np.fft.fft(x.astype(float) @ [1, 1j][:parts], axis=1)))
    assert_same(model(x[:1]), pairs(np.fft.fft(x[:1].astype(float) @ [1, 1j][:parts], axis=1)))


def test_float64_is_computed_in_float64():
    x = random.standard_normal((2, 300, 2))
    model = glowstone.compile(model_of("DFT", {"inverse": 1}, [2, 300, 2], element=TensorProto.DOUBLE))
    assert_same(model(x), pairs(np.fft.ifft(x @ [1, 1j], axis=1)), 1e-14)


@pytest.mark.parametrize("length", [None, 7, 8, 9, 14, 15, 20])
def test_inverse_of_half_a_spectrum(length):
    x = random.standard_normal((3, 8, 2, 2)).astype(np.float32)
    numbers = (None if length is None else np.int64(length), np.int64(1))
    model = glowstone.compile(model_of("DFT", {"inverse": 1, "onesided": 1}, ["n", 8, "m", 2], numbers))
    assert_same(model(x), np.fft.irfft(x.astype(float) @ [1, 1j], length, axis=1)[..., None])


def test_another_extent_along_the_axis():
    """With a given length a longer signal is cut and a shorter one filled up; without, the length is the extent."""
    for length in (None, np.int64(12)):
        model = glowstone.compile(model_of("DFT", {"axis": 1}, ["n", "count", 1], (length,), opset=17))
        for count in (16, 12, 9, 1, 30):
            x = random.standard_normal((2, count, 1)).astype(np.float32)
            assert_same(model(x), pairs(np.fft.fft(x[..., 0].astype(float), length, axis=1)))


@pytest.mark.parametrize("length", [64, 50])
def test_windows_of_signals_of_any_length(length):
    window = np.hanning(length)
    numbers = (np.int64(16), window.astype(np.float32), np.int64(length))
    model = glowstone.compile(model_of("STFT", {}, ["n", "samples", 1], numbers))
    for count in (200, length, 333):
        x = random.standard_normal((2, count, 1)).astype(np.float32)
        transform = ShortTimeFFT(window, 16, 1, fft_mode="onesided", phase_shift=None)
        centre = length // 2
        frames = (count - length) // 16 + 1
        cut = [x[:, 16 * number : 16 * number + length, 0] for number in range(frames)]
        expected = np.stack([transform.stft(part, 0, 1, k_offset=centre)[..., 0] for part in cut], 1)
        assert_same(model(x), pairs(expected))
