"""Random operators: the numbers that onnx's reference evaluator draws with the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import ModelError
from glowstone.graph import evaluate_graph
from glowstone.importer import import_model, open_model

X = np.random.default_rng(19).uniform(0, 1, (3, 40)).astype(np.float32)


def model_of(*nodes, opset=22, shape=X.shape, outputs=("y",), more=()):
    """Nodes on an input x of float32."""
    ports = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), *more]
    graph = helper.make_graph(list(nodes), "chance", inputs, ports)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def evaluated(proto, x=X):
    return list(evaluate_graph(import_model(open_model(proto), {"x": x.shape}), {"x": x}).values())


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("RandomUniform", {"shape": [3, 4], "low": -1.0, "high": 3.0}),
        ("RandomUniform", {"shape": [5], "dtype": TensorProto.DOUBLE}),
        ("RandomNormal", {"shape": [3, 4], "mean": 2.0, "scale": 0.5}),
        ("RandomUniformLike", {"high": 2.0}),
        ("RandomNormalLike", {"dtype": TensorProto.DOUBLE, "mean": -1.0}),
        ("Bernoulli", {}),
        ("Bernoulli", {"dtype": TensorProto.INT32}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_numbers_are_those_of_the_seed(kind, attributes):
    operands = ["x"] if kind == "Bernoulli" or kind.endswith("Like") else []
    proto = model_of(helper.make_node(kind, operands, ["y"], seed=5.0, **attributes))
    expected = ReferenceEvaluator(proto).run(None, {"x": X})[0]
    (found,) = evaluated(proto)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_bernoulli_as_machine_code_has_its_probabilities():
    model = glowstone.compile(model_of(helper.make_node("Bernoulli", ["x"], ["y"]), shape=["n", 40]))
    x = np.full((5000, 40), 0.3, np.float32)
    assert abs(model(x).mean() - 0.3) < 0.01
    np.testing.assert_array_equal(model(x), model(x))


def test_multinomial_draws_classes_by_their_odds():
    node = helper.make_node("Multinomial", ["x"], ["y"], sample_size=20000, seed=9.0, dtype=TensorProto.INT64)
    odds = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.0]], np.float32)
    model = glowstone.compile(model_of(node, shape=[2, 3]))
    found = model(odds)
    chances = np.exp(odds.astype(float)) / np.exp(odds.astype(float)).sum(1, keepdims=True)
    drawn = np.random.RandomState(9).uniform(size=(2, 20000))
    expected = [np.searchsorted(np.cumsum(row), numbers, "right") for row, numbers in zip(chances, drawn, strict=True)]
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.array(expected))


def test_nodes_without_a_seed_draw_numbers_of_their_own():
    nodes = [helper.make_node("RandomNormalLike", ["x"], [name]) for name in ("y", "z")]
    y, z = evaluated(model_of(*nodes, outputs=("y", "z")))
    again, _ = evaluated(model_of(*nodes, outputs=("y", "z")))
    assert abs(np.corrcoef(y.ravel(), z.ravel())[0, 1]) < 0.4
    np.testing.assert_array_equal(y, again)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 0.75])
def test_dropout_in_training(ratio):
    ports = [
        helper.make_tensor_value_info("ratio", TensorProto.FLOAT, []),
        helper.make_tensor_value_info("training", TensorProto.BOOL, []),
    ]
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"], seed=4)
    proto = model_of(node, outputs=("y", "mask"), more=ports)
    for port, element in zip(proto.graph.output, (TensorProto.FLOAT, TensorProto.BOOL), strict=True):
        port.CopyFrom(helper.make_tensor_value_info(port.name, element, X.shape))
    feeds = {"x": X, "ratio": np.float32(ratio).reshape(()), "training": np.array(True)}
    expected = ReferenceEvaluator(proto).run(None, feeds)
    model = glowstone.compile(proto)
    for name, array in zip(("y", "mask"), expected, strict=True):
        np.testing.assert_allclose(model.run(feeds)[name], array, rtol=1e-6)
    np.testing.assert_array_equal(model.run({**feeds, "training": np.array(False)})["y"], X)


def test_dropout_before_opset_7_trains_unless_it_is_a_test():
    trained = evaluated(model_of(helper.make_node("Dropout", ["x"], ["y", "mask"]), opset=6, outputs=("y", "mask")))
    y, mask = trained
    assert set(np.unique(mask)) == {0.0, 1.0}
    np.testing.assert_allclose(y, X * mask * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (helper.make_node("RandomUniform", [], ["y"]), "shape is missing"),
        (helper.make_node("RandomNormalLike", ["x"], ["y"], seed=float("inf")), "seed is no number"),
    ],
)
def test_what_is_refused(node, message):
    with pytest.raises(ModelError, match=message):
        evaluated(model_of(node))
