"""assign_layouts where its data are as small as can be, and where pixels move, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone

OUTER_CHANGES = 2
"""Of the input and of the result."""
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


def between_convolutions(channels: int, nodes: list, weights: dict, after: int, size: tuple[int, int]):
    """x [1, 5, size] -> Conv to `channels` -> nodes from "a" to "b" -> Conv of `after` channels."""
    random = np.random.default_rng(channels)

    def numbers(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    weights = {"w": numbers(channels, 5, 3, 3), "v": numbers(6, after, 1, 1), **weights}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        *nodes,
        helper.make_node("Conv", ["b", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "moved",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    return model, {"x": numbers(1, 5, *size)}


def layout_changes(model: glowstone.Model) -> int:
    """Copies that only change the layout: to channel blocks or back."""
    plan = model.engine.reference_plan()
    return sum(
        instruction.operation.name == "Copy" and {view.strides[-1] for view in instruction.operands} != {1}
        for instruction in plan.instructions
    )


def check_moved(model: onnx.ModelProto, inputs: dict, stays_blocked: bool = True) -> None:
    """As ONNX Runtime, for the shape of the inputs and for symbolic extents; with or without plain data inside."""
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    scale = np.abs(expected).max()
    fixed = glowstone.compile(model, shapes={"x": inputs["x"].shape}, options={"check": True})
    for compiled in (fixed, glowstone.compile(model, options={"check": True})):
        (found,) = compiled.run(inputs).values()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale)
    assert (layout_changes(fixed) == OUTER_CHANGES) == stays_blocked


@pytest.mark.parametrize("channels", [8, 11])
@pytest.mark.parametrize(
    ("mode", "coordinates", "scales"),
    [
        ("nearest", "asymmetric", (2, 2)),
        ("nearest", "half_pixel", (3, 1)),
        ("nearest", "asymmetric", (2, 1.5)),
        ("nearest", "half_pixel", (0.5, 4)),
        ("linear", "half_pixel", (2, 2)),
        ("linear", "align_corners", (1.5, 0.5)),
        ("cubic", "half_pixel", (2, 1)),
    ],
)
def test_resizing_between_convolutions_stays_blocked(channels, mode, coordinates, scales):
    node = helper.make_node(
        "Resize",
        ["a", "", "scales"],
        ["b"],
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode="floor" if coordinates == "asymmetric" else "round_prefer_floor",
    )
    weights = {"scales": np.array([1, 1, *scales], np.float32)}
    model, inputs = between_convolutions(channels, [node], weights, channels, (4, 6))
    check_moved(model, inputs)


def test_resized_channels_leave_the_blocks():
    node = helper.make_node("Resize", ["a", "", "scales"], ["b"], mode="nearest")
    weights = {"scales": np.array([1, 2, 2, 1], np.float32)}
    model, inputs = between_convolutions(8, [node], weights, 16, (4, 6))
    check_moved(model, inputs, stays_blocked=False)


@pytest.mark.parametrize(
    ("outputs", "kernel", "attributes"),
    [
        (16, 2, {"strides": [2, 2]}),
        (8, 3, {"strides": [3, 3]}),
        (8, 2, {"strides": [2, 2], "kernel_shape": [2, 2]}),
        (9, 2, {"strides": [2, 2]}),
        (16, 4, {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        (16, 3, {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        (16, 2, {"strides": [2, 1]}),
        (8, 2, {"strides": [2, 2], "group": 2}),
        (8, 2, {"strides": [2, 2], "dilations": [2, 1]}),
    ],
)
def test_transposed_convolutions_between_convolutions(outputs, kernel, attributes):
    random = np.random.default_rng(outputs)
    groups = attributes.get("group", 1)
    weights = {
        "t": random.standard_normal((12, outputs // groups, kernel, kernel)).astype(np.float32),
        "s": random.standard_normal(outputs).astype(np.float32),
    }
    nodes = [
        helper.make_node("ConvTranspose", ["a", "t", "s"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["b"]),
    ]
    model, inputs = between_convolutions(12, nodes, weights, outputs, (5, 4))
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    for shapes in ({"x": inputs["x"].shape}, None):
        (found,) = glowstone.compile(model, shapes=shapes, options={"check": True}).run(inputs).values()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_a_transposed_convolution_onto_itself_moves_whole_blocks():
    """Kernel and stride of two, whole blocks of channels: no change of layout, and the activation in its epilogue."""
    random = np.random.default_rng(5)
    weights = {"t": random.standard_normal((12, 16, 2, 2)).astype(np.float32)}
    nodes = [
        helper.make_node("ConvTranspose", ["a", "t"], ["c"], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["b"]),
    ]
    model, inputs = between_convolutions(12, nodes, weights, 16, (5, 4))
    check_moved(model, inputs)
    plan = glowstone.compile(model, shapes={"x": inputs["x"].shape}).engine.reference_plan()
    assert "Elementwise" not in {instruction.operation.name for instruction in plan.instructions}


@pytest.mark.parametrize(
    ("channels", "mode", "stays_blocked"), [(32, "DCR", True), (32, "CRD", False), (20, "DCR", False)]
)
def test_channels_to_pixels_between_convolutions(channels, mode, stays_blocked):
    node = helper.make_node("DepthToSpace", ["a"], ["b"], blocksize=2, mode=mode)
    model, inputs = between_convolutions(channels, [node], {}, channels // 4, (3, 5))
    check_moved(model, inputs, stays_blocked)


@pytest.mark.parametrize(
    ("outputs", "attributes", "copies"),
    [
        (40, {"strides": [2, 2]}, 1),
        (40, {"strides": [3, 1]}, 1),
        (40, {"strides": [2, 2], "pads": [1, 1, 0, 0]}, 0),
        (8, {"strides": [2, 2]}, 0),
    ],
)
def test_pixels_that_a_strided_kernel_of_one_reads(outputs, attributes, copies):
    """They are copied where many output channels read them."""
    random = np.random.default_rng(outputs)
    weights = {"s": random.standard_normal((outputs, 12, 1, 1)).astype(np.float32)}
    node = helper.make_node("Conv", ["a", "s"], ["b"], **attributes)
    model, inputs = between_convolutions(12, [node], weights, outputs, (7, 6))
    check_moved(model, inputs)
    plan = glowstone.compile(model, shapes={"x": inputs["x"].shape}).engine.reference_plan()
    operations = [instruction.operation.name for instruction in plan.instructions]
    assert operations.count("Copy") == OUTER_CHANGES + copies
