"""Forms of reductions, selections and normalizations that older versions had, and results that may be left out."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from glowstone.graph import evaluate_graph, verify_graph
from glowstone.importer import import_model, open_model

X = np.random.default_rng(31).uniform(-2, 2, (2, 4, 3)).astype(np.float32)
PARAMETERS = {
    "two": np.array([2]),
    "axis": np.array(-2),
    "none": np.array([], np.int64),
    "pair": np.array([1.5, -0.5], np.float32),
    "tail": np.array([1.5, -0.5, 2], np.float32),
    "channels": np.array([1.5, -0.5, 2, 1], np.float32),
    "rows": np.array([[1.5], [-0.5], [2], [1]], np.float32),
}
FORMS = [
    (9, helper.make_node("TopK", ["x"], ["y", "y1"], k=2, axis=1)),
    (10, helper.make_node("TopK", ["x", "two"], ["y", "y1"])),
    (11, helper.make_node("TopK", ["x", "two"], ["y", "y1"], axis=-2, largest=0)),
    (11, helper.make_node("CumSum", ["x", "axis"], ["y"], exclusive=1)),
    (11, helper.make_node("ReduceL1", ["x"], ["y"], axes=[-1], keepdims=0)),
    (18, helper.make_node("ReduceL2", ["x", "two"], ["y"])),
    (18, helper.make_node("ReduceSumSquare", ["x", "none"], ["y"], noop_with_empty_axes=1)),
    (18, helper.make_node("ReduceSumSquare", ["x", "none"], ["y"])),
    (9, helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2])),
    (18, helper.make_node("GroupNormalization", ["x", "pair", "pair"], ["y"], num_groups=2)),
    (15, helper.make_node("BatchNormalization", ["x", *["channels"] * 4], ["y", "y1", "y2"], training_mode=1)),
    (17, helper.make_node("LayerNormalization", ["x", "tail"], ["y", "y1", "y2"])),
    (17, helper.make_node("LayerNormalization", ["x", "tail", "tail"], ["y", "", "y2"])),
    (17, helper.make_node("LayerNormalization", ["x", "rows", "tail"], ["y"], axis=1)),
]


@pytest.mark.parametrize(("opset", "node"), FORMS, ids=lambda value: getattr(value, "op_type", str(value)))
def test_forms_against_the_onnx_package(opset, node):
    outputs = [name for name in node.output if name]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [
            helper.make_tensor_value_info(
                name, TensorProto.INT64 if (node.op_type, name) == ("TopK", "y1") else TensorProto.FLOAT, None
            )
            for name in outputs
        ],
        [numpy_helper.from_array(array, name) for name, array in PARAMETERS.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    imported = import_model(open_model(proto))
    verify_graph(imported)
    found = evaluate_graph(imported, {"x": X})
    if node.op_type == "GroupNormalization":  # the onnx package knows the later form only
        groups = X.astype(np.float64).reshape(2, 2, -1)
        normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
        expected = [(normal * np.array([[1.5], [-0.5]]) + np.array([[1.5], [-0.5]])).reshape(X.shape)]
    else:
        expected = ReferenceEvaluator(proto).run(None, {"x": X})
    for name, wanted in zip(outputs, expected, strict=True):
        assert found[name].shape == wanted.shape
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5)
