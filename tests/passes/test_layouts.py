"""assign_layouts where its data are as small as can be, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone

UNFUSED = ["fuse_elementwise", "fuse_epilogues", "shrink_convolutions"]


@pytest.mark.parametrize("channels", [1, 3, 9])
@pytest.mark.parametrize("extent", [1, 2])
def test_elementwise_nodes_behind_a_convolution_to_one_element(channels, extent):
    """Its result has one element: alone, and spread over channels and pixels."""
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(random.standard_normal((1, 8, 1, 1)).astype(np.float32), "w"),
        numpy_helper.from_array(random.standard_normal((1, channels, extent, 1)).astype(np.float32), "spread"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["one"]),
        helper.make_node("Sigmoid", ["one"], ["alone"]),
        helper.make_node("Mul", ["one", "spread"], ["wide"]),
        helper.make_node("Add", ["wide", "alone"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 1, 1])]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, extent, 1]),
        helper.make_tensor_value_info("alone", TensorProto.FLOAT, [1, 1, 1, 1]),
    ]
    graph = helper.make_graph(nodes, "single", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = random.standard_normal((1, 8, 1, 1)).astype(np.float32)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    for skipped in ([], UNFUSED):
        compiled = glowstone.compile(model, options={"check": True, "skip_passes": skipped})
        for found, wanted in zip(compiled.run({"x": x}).values(), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
