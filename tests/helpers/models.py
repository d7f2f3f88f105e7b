"""Small ONNX models for tests."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save_model(path: Path, graph: onnx.GraphProto) -> Path:
    """Save a graph as a model of opset 17."""
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def save_small_convolution(path: Path) -> Path:
    """y = softmax(relu(conv(x))) over 8 channels, with x [n, 3, 48, w]."""
    random = np.random.default_rng(0)
    weights = numpy_helper.from_array(random.standard_normal((8, 3, 3, 3), dtype=np.float32), "weights")
    nodes = [
        helper.make_node("Conv", ["x", "weights"], ["sums"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["sums"], ["active"]),
        helper.make_node("Softmax", ["active"], ["y"], axis=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 48, "w"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, 48, "w"])
    return save_model(path, helper.make_graph(nodes, "small", [x], [y], [weights]))


def save_matrix_product(path: Path, rows: int, inner: int, columns: int, scale: float = 1.0) -> Path:
    """y = x @ w with x [rows, inner] and seeded normal weights times `scale`."""
    random = np.random.default_rng(0)
    weights = (random.standard_normal((inner, columns)) * scale).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, inner])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])
    return save_model(path, helper.make_graph([node], "product", [x], [y], [numpy_helper.from_array(weights, "w")]))


def save_convolution_chain(path: Path, length: int, channels: int = 64, extent: int = 56) -> Path:
    """A chain of 3 x 3 convolutions with one weight for all, x [1, channels, extent, extent]."""
    random = np.random.default_rng(0)
    shape = (channels, channels, 3, 3)
    weights = (random.standard_normal(shape) / np.sqrt(9 * channels)).astype(np.float32)
    names = ["x", *(f"t{index}" for index in range(length - 1)), "y"]
    nodes = [
        helper.make_node("Conv", [before, "w"], [after], pads=[1, 1, 1, 1])
        for before, after in itertools.pairwise(names)
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, extent, extent]) for name in "xy"]
    graph = helper.make_graph(nodes, "chain", ports[:1], ports[1:], [numpy_helper.from_array(weights, "w")])
    return save_model(path, graph)
