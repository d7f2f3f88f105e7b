"""Winograd convolution against its own interpretation and against a direct sum in float64."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone
from glowstone.api.compilation import Request, compile_request
from glowstone.backends.cpu.convolution_choice import winograd_tile
from glowstone.backends.cpu.ops import WinogradConv
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import WINOGRAD, ConvolutionCase, ConvolutionChoice, Tuning
from glowstone.backends.cpu.winograd_transforms import FILTERINGS, MinimalFiltering
from glowstone.lir.operations.convolution import convolve

WORST_ERROR = 3e-5


def convolution_model(inputs: int, outputs: int, height: int, width: int, pads: list[int], seed: int) -> bytes:
    """Convolution, bias, residual where shapes allow, and ReLU."""
    random = np.random.default_rng(seed)
    w = (random.standard_normal((outputs, inputs, 3, 3)) / np.sqrt(9 * inputs)).astype(np.float32)
    bias = random.standard_normal(outputs).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=pads)]
    if inputs == outputs and pads == [1] * 4:
        nodes.append(helper.make_node("Add", ["c", "x"], ["a"]))
    nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], ["y"]))
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", inputs, height, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def operations_of(model: glowstone.Model) -> set[str]:
    return {instruction["operation"] for instruction in model.report()["instructions"]}


@pytest.mark.parametrize(
    ("inputs", "outputs", "size", "pads"),
    [
        (64, 64, (56, 56), [1, 1, 1, 1]),
        (40, 72, (23, 19), [1, 1, 1, 1]),
        (33, 65, (30, 31), [0, 1, 2, 0]),
        (128, 128, (14, 14), [1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("batch", [1, 2])
def test_compiled_convolutions(inputs, outputs, size, pads, batch):
    serialized = convolution_model(inputs, outputs, *size, pads, seed=inputs)
    x = np.random.default_rng(batch).standard_normal((batch, inputs, *size)).astype(np.float32)
    model = glowstone.compile(serialized, shapes={"x": x.shape}, options={"check": True})
    assert "WinogradConvolution" in operations_of(model)
    (expected,) = onnxruntime.InferenceSession(serialized, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    found = model(x)
    assert np.abs(found - expected).max() <= WORST_ERROR * np.abs(expected).max()
    doubled = model(np.concatenate([x, x]))
    assert np.abs(doubled[batch:] - expected).max() <= WORST_ERROR * np.abs(expected).max()


@pytest.mark.parametrize("algorithm", WINOGRAD)
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 64), (96, 24), (128, 256), (256, 256), (512, 512)])
def test_error_of_layers_as_networks_have_them(inputs, outputs, algorithm):
    """Against float64, with activations that are positive, as behind a ReLU."""
    side = 15
    case = ConvolutionCase(inputs, outputs, 1, (3, 3), (1, 1), (1, 1), 1, side, side)
    tuning = Tuning({case: ConvolutionChoice(algorithm)})
    serialized = convolution_model(inputs, outputs, side, side, [1] * 4, seed=outputs)
    model = compile_request(Request(serialized, shapes={"x": (1, inputs, side, side)}, tuning=tuning))
    assert "WinogradConvolution" in operations_of(model)
    x = np.abs(np.random.default_rng(inputs).standard_normal((1, inputs, side, side))).astype(np.float32)
    weights = onnx.load_model_from_string(serialized).graph.initializer
    w, b = (numpy_helper.to_array(one).astype(np.float64) for one in weights)
    sums = convolve(x.astype(np.float64), w, (side, side), (1, 1), (1, 1), (1, 1), 1) + b[:, None, None]
    expected = np.maximum(sums + x if inputs == outputs else sums, 0)
    assert np.abs(model(x) - expected).max() <= WORST_ERROR * expected.max()


def test_strict_numerics_never_use_it():
    serialized = convolution_model(64, 64, 56, 56, [1] * 4, seed=0)
    model = glowstone.compile(serialized, numerics="strict", shapes={"x": (1, 64, 56, 56)})
    assert "WinogradConvolution" not in operations_of(model)


def transformed(form: MinimalFiltering, w: np.ndarray) -> np.ndarray:
    """[O, I, 3, 3] to [products, I, O]."""
    result = np.full((form.products, w.shape[1], w.shape[0]), np.nan)
    form.transform_weights(w, result)
    return result


@pytest.mark.parametrize("form", FILTERINGS.values(), ids=FILTERINGS)
@pytest.mark.parametrize(("height", "width"), [(1, 1), (4, 4), (5, 7), (13, 8)])
@pytest.mark.parametrize("pads", [(0, 0), (1, 1), (2, 0)])
def test_tiles_give_the_sums_of_the_definition(form, height, width, pads):
    random = np.random.default_rng(height)
    x = random.standard_normal((2, 3, height + 1, width + 2))
    w = random.standard_normal((5, 3, 3, 3))
    expected = convolve(x, w, (height, width), (1, 1), (1, 1), pads, 1)
    found = form.convolve_tiles(x, transformed(form, w), height, width, *pads)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * 100)


@pytest.mark.parametrize("form", FILTERINGS.values(), ids=FILTERINGS)
def test_transformed_weights_are_restored(form):
    w = np.random.default_rng(0).standard_normal((300, 250, 3, 3))  # more than are transformed at a time
    np.testing.assert_allclose(form.restore_weights(transformed(form, w)), w, atol=1e-12)


@pytest.mark.parametrize("tile", FILTERINGS)
@pytest.mark.parametrize(("inputs", "outputs"), [(5, 3), (16, 40)])
def test_packing_is_undone(inputs, outputs, tile):
    w = np.random.default_rng(1).standard_normal((outputs, inputs, 3, 3)).astype(np.float32)
    operator = WinogradConv(channels=outputs, inputs=inputs, block=8, panel=16, tile=tile)
    np.testing.assert_allclose(operator.unpack(operator.pack(w)), w, atol=1e-6)


def test_larger_images_take_larger_tiles():
    target = Target.host()
    sides = [1, 7, 14, 28, 56]
    tiles = [winograd_tile(512, 512, 1, side, side, target) or 1 for side in sides]
    assert tiles == sorted(tiles)
    assert (tiles[0], tiles[-1]) == (1, max(FILTERINGS))
    assert set(FILTERINGS) <= set(tiles)
    assert not any(winograd_tile(4, 4, 1, side, side, target) for side in sides)
