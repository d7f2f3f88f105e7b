"""`glowstone.onnx_backend` as onnx's interface of backends wants it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.processes import run_python
from onnx import TensorProto, helper
from onnx.backend.base import Backend, BackendRep

import glowstone.onnx_backend as backend
from glowstone import InputError

X = np.array([[-1.5, 0.0], [2.0, -3.0]], np.float32)


def model_of(operator: str):
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "one", ports[:1], ports[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_the_class_is_a_backend_of_onnx():
    assert issubclass(backend.GlowstoneBackend, Backend)
    assert isinstance(backend.prepare(model_of("Relu")), BackendRep)


@pytest.mark.parametrize("inputs", [[X], X, {"x": X}], ids=["list", "array", "names"])
def test_inputs_come_by_position_or_by_name(inputs):
    (result,) = backend.run_model(model_of("Relu"), inputs)
    np.testing.assert_array_equal(result, np.maximum(X, 0))


def test_one_node_runs_in_an_opset():
    node = helper.make_node("Sub", ["a", "b"], ["y"])
    (result,) = backend.run_node(node, [X, X[:1]], opset_version=13)
    np.testing.assert_array_equal(result, X - X[:1])


def test_only_the_processor_is_a_device():
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    with pytest.raises(InputError, match="device"):
        backend.prepare(model_of("Relu"), "CUDA")


def test_what_does_not_compile_is_not_compatible():
    assert backend.is_compatible(model_of("Relu"))
    assert not backend.is_compatible(model_of("NoSuchOperator"))


def test_too_many_inputs_are_refused():
    with pytest.raises(InputError, match="too many"):
        backend.run_model(model_of("Relu"), [X, X])


def test_onnx_is_imported_with_the_backend_only():
    source = "import sys, json, glowstone; before = 'onnx' in sys.modules; import glowstone.onnx_backend; "
    assert json.loads(run_python(source + "print(json.dumps([before, 'onnx' in sys.modules]))")) == [False, True]
