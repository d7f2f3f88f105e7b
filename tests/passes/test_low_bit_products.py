"""Products with weights of 2 and 4 bits are recovered from dequantization by constants, and mean the same."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone
from glowstone.graph import evaluate_graph, verify_graph
from glowstone.graph_passes.recover_low_bit_products import SMALLEST, recover_low_bit_products
from glowstone.importer import import_model, open_model
from glowstone.ops import LowBitMatMul
from glowstone.types import ElementType

COLUMNS = 70
FORMS = {
    "one scale": ((), 1, 0),
    "per column": ((COLUMNS,), 1, 0),
    "blocks of 32": ((8, COLUMNS), 0, 32),
    "blocks of 64, counted from the end": ((4, COLUMNS), -2, 64),
}
"""Shape of the scales, axis and length of blocks of 250 rows."""
DEPTH = 250
STAYING = {"per row": ((DEPTH,), 0, 0), "blocks of 50": ((5, COLUMNS), 0, 50), "blocks of columns": ((DEPTH, 5), 1, 16)}


def model_of(element, shape, axis, block, has_zero_points=True, depth=DEPTH):
    random = np.random.default_rng(len(str(shape)) + depth)
    weights = random.integers(0, 1 << element.bits, (depth, COLUMNS), np.uint8).view(element.dtype)
    arrays = {"w": weights, "s": random.uniform(0.02, 0.1, shape).astype(np.float32)}
    if has_zero_points:
        zeros = random.integers(0, 1 << element.bits, shape or (1,), np.uint8).reshape(shape)
        arrays["z"] = zeros.view(element.dtype)
    attributes = {"axis": axis, "block_size": block} if block else {"axis": axis}
    nodes = [
        helper.make_node("DequantizeLinear", list(arrays), ["wide"], **attributes),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, depth])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3, COLUMNS])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opset = 21 if element.bits == 4 else 25
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def numbers(batch, depth=DEPTH):
    return np.random.default_rng(2).standard_normal((batch, 3, depth)).astype(np.float32)


@pytest.mark.parametrize("has_zero_points", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("element", [ElementType.I4, ElementType.U4, ElementType.I2, ElementType.U2], ids=str)
def test_recovered_products_mean_the_same(element, form, has_zero_points):
    graph = import_model(open_model(model_of(element, *FORMS[form], has_zero_points)), {"x": (2, 3, DEPTH)})
    x = numbers(2)
    (expected,) = evaluate_graph(graph, {"x": x}).values()
    assert recover_low_bit_products(graph)
    verify_graph(graph)
    assert any(isinstance(node.operator, LowBitMatMul) for node in graph.nodes)
    (found,) = evaluate_graph(graph, {"x": x}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_one_scale_of_any_rank():
    graph = import_model(open_model(model_of(ElementType.I4, (1, 1, 1), 1, 0)), {"x": (2, 3, DEPTH)})
    (expected,) = evaluate_graph(graph, {"x": numbers(2)}).values()
    assert recover_low_bit_products(graph)
    (found,) = evaluate_graph(graph, {"x": numbers(2)}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("form", STAYING)
def test_other_forms_stay(form):
    graph = import_model(open_model(model_of(ElementType.I4, *STAYING[form])), {"x": (2, 3, DEPTH)})
    assert not recover_low_bit_products(graph)


def test_small_weights_stay():
    depth = SMALLEST // COLUMNS
    made = model_of(ElementType.U4, *FORMS["per column"], depth=depth)
    assert not recover_low_bit_products(import_model(open_model(made), {"x": (2, 3, depth)}))


@pytest.mark.parametrize("element", [ElementType.I4, ElementType.U4], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_compiled_products_are_those_of_onnx_runtime(element, form):
    made = model_of(element, *FORMS[form])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # else x goes to 8 bits
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    model = glowstone.compile(made)
    for batch in (1, 3):
        x = numbers(batch)
        expected = np.asarray(session.run(None, {"x": x})[0])
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
