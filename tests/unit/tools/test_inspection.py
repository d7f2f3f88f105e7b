"""Counting what an ONNX file contains."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowstone.errors import ModelError, ShapeError
from glowstone.tools.inspection import inspect_model


def save(tmp_path, nodes, inputs, outputs, weights):
    """Save a model whose tensors are all float32, with shapes by name."""

    def info(shapes):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]

    initializers = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in weights.items()]
    graph = helper.make_graph(nodes, "test", info(inputs), info(outputs), initializers)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_multiply_adds_of_every_kind(tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], group=2, pads=[1, 1, 1, 1]),
        helper.make_node("ConvTranspose", ["a", "v"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "g"], ["d"], transB=1),
        helper.make_node("MatMul", ["d", "m"], ["y"]),
    ]
    weights = {"w": (8, 2, 3, 3), "v": (8, 5, 2, 2), "g": (10, 5 * 7 * 7), "m": (10, 3)}
    path = save(tmp_path, nodes, {"x": (2, 4, 6, 6)}, {"y": (2, 3)}, weights)
    convolution = (2 * 8 * 6 * 6) * (2 * 3 * 3)
    transposed = (2 * 8 * 6 * 6) * (5 * 2 * 2)
    products = (2 * 10) * (5 * 7 * 7) + (2 * 3) * 10
    summary = inspect_model(path)
    assert summary.operations == 2 * (convolution + transposed + products)
    assert summary.parameters == sum(int(np.prod(shape)) for shape in weights.values())


def test_operations_are_unknown_until_shapes_are_given(tmp_path):
    path = save(
        tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("n", 3)}, {"y": ("n", 4)}, {"w": (3, 4)}
    )
    assert inspect_model(path).operations is None
    assert inspect_model(path, {"x": (5, 3)}).operations == 2 * 5 * 3 * 4


@pytest.mark.parametrize("shapes", [{"z": (5, 3)}, {"x": (5,)}, {"x": (5, 4)}])
def test_shapes_that_do_not_fit_are_refused(tmp_path, shapes):
    path = save(
        tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("n", 3)}, {"y": ("n", 4)}, {"w": (3, 4)}
    )
    with pytest.raises(ShapeError):
        inspect_model(path, shapes)


@pytest.mark.parametrize("content", [b"", b"\x08\xff\xff", b"not a model at all, but some text"])
def test_what_is_not_a_model_is_refused(tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.onnx"):
        inspect_model(path)
