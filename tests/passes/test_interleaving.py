"""interleave_convolutions, on images of ordinary size for a cache that is taken to be tiny, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone
from glowstone.backends.cpu.passes import interleave_convolutions


def network(channels: int, attributes: dict, *, kernel: int = 3, residual: bool = False, behind: str = "Relu"):
    """x [n, channels, h, w] -> Conv 1 x 1 -> depthwise -> Relu -> Conv 1 x 1, perhaps plus what it began with."""
    random = np.random.default_rng(channels + kernel)

    def numbers(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    weights = {
        "first": numbers(channels, channels, 1, 1),
        "depthwise": numbers(channels, 1, kernel, kernel),
        "bias": numbers(channels),
        "second": numbers(channels, channels, 1, 1),
    }
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"]),
        helper.make_node("Conv", ["a", "depthwise", "bias"], ["b"], group=channels, **attributes),
        helper.make_node(behind, ["b"], ["c"]),
        helper.make_node("Conv", ["c", "second"], ["d"]),
        helper.make_node("Add", ["d", "a"], ["y"]) if residual else helper.make_node("Sigmoid", ["d"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "separable",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", channels, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def tiny_cache(monkeypatch):
    """Bands of a few rows for every image."""
    monkeypatch.setattr(interleave_convolutions, "LEAST_CACHES", 0)
    monkeypatch.setattr(interleave_convolutions, "BAND_CACHES", 1 / 512)  # 1 KiB of 512


def depthwise_count(model: glowstone.Model) -> int:
    plan = model.engine.reference_plan()
    return sum(instruction.operation.name == "DepthwiseConvolution" for instruction in plan.instructions)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("channels", "shape", "attributes", "options"),
    [
        (8, (1, 13, 9), {"pads": [1, 1, 1, 1]}, {}),
        (16, (2, 12, 7), {"pads": [1, 1, 1, 1]}, {"residual": True}),
        (17, (1, 14, 6), {"pads": [0, 1, 1, 0], "strides": [2, 2]}, {}),
        (8, (1, 11, 8), {"pads": [4, 4, 4, 4], "dilations": [2, 2]}, {"kernel": 5}),
        (8, (1, 31, 5), {"pads": [2, 0, 0, 2], "strides": [3, 1]}, {}),
        (8, (1, 9, 5), {"pads": [6, 1, 6, 1]}, {}),
        (24, (3, 10, 10), {}, {"behind": "Sigmoid"}),
    ],
)
def test_bands_of_rows(tiny_cache, threads, channels, shape, attributes, options):
    batch, height, width = shape
    model = network(channels, attributes, **options)
    x = np.random.default_rng(0).standard_normal((batch, channels, height, width)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    found = {}
    for skipped in ([], ["interleave_convolutions"]):
        compiled = glowstone.compile(
            model,
            shapes={"x": x.shape},
            threads=threads,
            cache=False,
            options={"check": True, "skip_passes": skipped},
        )
        (found[len(skipped)],) = compiled.run({"x": x}).values()
        assert (depthwise_count(compiled) == 1) == bool(skipped)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_what_something_else_reads_is_left_alone(tiny_cache):
    model = network(8, {"pads": [1, 1, 1, 1]})
    model.graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, None))
    x = np.random.default_rng(0).standard_normal((1, 8, 12, 9)).astype(np.float32)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    compiled = glowstone.compile(model, shapes={"x": x.shape}, cache=False)
    assert depthwise_count(compiled) == 1
    for name, wanted in zip(("y", "c"), expected, strict=True):
        np.testing.assert_allclose(compiled.run({"x": x})[name], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(("side", "is_whole"), [(64, True), (320, False)])
def test_only_large_images_are_cut_for_the_cache_as_it_is(side, is_whole):
    model = network(16, {"pads": [1, 1, 1, 1]})
    compiled = glowstone.compile(model, shapes={"x": (1, 16, side, side)})
    assert (depthwise_count(compiled) == 1) == is_whole
