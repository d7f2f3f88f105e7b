"""InferenceSession is called as ONNX Runtime's, with ONNX Runtime's own objects, and gives what that gives."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
from helpers.models import save_small_convolution
from onnx import TensorProto, helper

import glowstone
from glowstone.errors import GlowstoneError, InputError, LimitError, ShapeError

X = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def data() -> bytes:
    """y = relu(x w), z = x + x, over a symbolic number of rows."""
    weights = np.random.default_rng(4).standard_normal((8, 5)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["product"]),
            helper.make_node("Relu", ["product"], ["y"]),
            helper.make_node("Add", ["x", "x"], ["z"]),
        ],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 5]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, ["rows", 8]),
        ],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.tobytes(), raw=True)],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_calls_give_what_onnx_runtime_gives(data):
    ours = glowstone.InferenceSession(data, providers=["CPUExecutionProvider"])
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for names in (None, [], ["z"], ["z", "y"]):
        found, expected = ours.run(names, {"x": X}), theirs.run(names, {"x": X})
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for array, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(array, other, rtol=1e-5, atol=1e-5)
    for method in ("get_inputs", "get_outputs"):
        described = [[(a.name, a.shape, a.type) for a in getattr(session, method)()] for session in (ours, theirs)]
        assert described[0] == described[1]
    assert ours.get_providers() == theirs.get_providers()


def test_session_options_of_onnx_runtime_are_honoured(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_free_dimension_override_by_name("rows", 4)
    session = glowstone.InferenceSession(data, options)
    assert session.get_inputs()[0].shape == [4, 8]
    assert len(session.run(None, {"x": X}, onnxruntime.RunOptions())) == 2
    with pytest.raises(ShapeError, match="override"):
        session.run(None, {"x": X[:3]})


def test_what_has_no_meaning_is_warned_of_once(data):
    options = SimpleNamespace(enable_mem_pattern=False, intra_op_num_threads=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            glowstone.InferenceSession(data, options, ["ImaginaryExecutionProvider", "CPUExecutionProvider"])
    texts = [str(warning.message) for warning in caught]
    for part in ("enable_mem_pattern", "ImaginaryExecutionProvider"):
        assert len([text for text in texts if part in text]) == 1


def test_what_would_change_results_is_refused(data):
    with pytest.raises(InputError, match="providers"):
        glowstone.InferenceSession(data, providers=["CUDAExecutionProvider"])
    with pytest.raises(InputError, match="optimized_model_filepath"):
        glowstone.InferenceSession(data, SimpleNamespace(optimized_model_filepath="somewhere.onnx"))
    with pytest.raises(InputError, match="terminate"):
        glowstone.InferenceSession(data).run(None, {"x": X}, SimpleNamespace(terminate=True))


@pytest.mark.parametrize(
    ("inputs", "parts"),
    [
        ({"w": X}, ["x", "w"]),
        ({}, ["x"]),
        ({"x": X.astype(np.float64)}, ["float32", "float64"]),
        ({"x": X[0]}, ["8"]),
        ({"x": X[:, :7]}, ["8", "7"]),
    ],
)
def test_inputs_that_do_not_fit_say_what_was_expected_and_what_came(data, inputs, parts):
    model = glowstone.compile(data)
    with pytest.raises(GlowstoneError) as caught:
        model.run(inputs)
    assert all(part in str(caught.value) for part in parts)
    assert model.run({"x": X})["z"].shape == X.shape


def test_positional_calls_and_outputs_by_name(data):
    model = glowstone.compile(data, shapes={"x": (4, 8)})
    y, z = model(X)
    np.testing.assert_array_equal(z, X + X)
    only = model.run({"x": X}, ["y"])
    assert list(only) == ["y"]
    np.testing.assert_array_equal(only["y"], y)


def test_planned_memory_above_the_limit_is_refused(tmp_path):
    path = save_small_convolution(tmp_path / "model.onnx")
    planned = glowstone.compile(path, cache=False).report()["memory"]["arena_bytes"]
    for cache in (False, True):
        with pytest.raises(LimitError):
            glowstone.compile(path, memory_limit=planned - 1, cache=cache)
    assert glowstone.compile(path, memory_limit=2 * planned)
