"""Operators made of others, compiled with symbolic extents: machine code at several shapes against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone

random = np.random.default_rng(30)
HIDDEN = 5


def weights(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def network(kind, gates, **attributes):
    """A bidirectional network with biases over [steps, batch, 3]."""
    parameters = {
        "w": weights(2, gates * HIDDEN, 3),
        "r": weights(2, gates * HIDDEN, HIDDEN),
        "b": weights(2, 2 * gates * HIDDEN),
    }
    node = helper.make_node(
        kind, ["x", "w", "r", "b"], ["y", "h"], hidden_size=HIDDEN, direction="bidirectional", **attributes
    )
    return [node], parameters, ["y", "h"]


CASES = {
    "LSTM": (network("LSTM", 4, clip=0.5), ["s", "b", 3], [(4, 2, 3), (1, 1, 3), (9, 4, 3)]),
    "GRU": (network("GRU", 3), ["s", "b", 3], [(4, 2, 3), (6, 1, 3)]),
    "RNN": (network("RNN", 1, activations=["Relu", "Affine"], activation_alpha=[0.5], activation_beta=[0.1]),
            ["s", "b", 3], [(4, 2, 3), (6, 1, 3)]),
    "GroupNormalization": (
        ([helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)],
         {"s": weights(4), "b": weights(4)}, ["y"]),
        ["n", 4, "w"], [(2, 4, 5), (1, 4, 8)]),
    "InstanceNormalization": (
        ([helper.make_node("InstanceNormalization", ["x", "s", "b"], ["y"])],
         {"s": weights(4), "b": weights(4)}, ["y"]),
        ["n", 4, "w"], [(2, 4, 5), (1, 4, 8)]),
    "LRN": (([helper.make_node("LRN", ["x"], ["y"], size=3, alpha=0.5)], {}, ["y"]),
            ["n", "c", "h", "w"], [(2, 4, 5, 3), (1, 6, 2, 2)]),
    "ReduceLogSumExp": (([helper.make_node("ReduceLogSumExp", ["x", "a"], ["y"], keepdims=0)],
                         {"a": np.array([0, 2])}, ["y"]),
                        ["n", "c", "w"], [(2, 4, 5), (3, 1, 8)]),
    "TopK": (([helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=1)], {"k": np.array([2])}, ["y", "i"]),
             ["n", "c", "w"], [(2, 4, 5), (3, 40, 1)]),
    "ArgMax": (([helper.make_node("ArgMax", ["x"], ["y"], axis=-1)], {}, ["y"]), ["n", "c"], [(2, 4), (3, 40)]),
    "CumSum": (([helper.make_node("CumSum", ["x", "a"], ["y"], reverse=1)], {"a": np.array(1)}, ["y"]),
               ["n", "c"], [(2, 4), (3, 40)]),
    "ReverseSequence": (([helper.make_node("ReverseSequence", ["x", "l"], ["y"], time_axis=1, batch_axis=0)],
                         {"l": np.array([3, 1])}, ["y"]),
                        [2, "t", "w"], [(2, 4, 5), (2, 3, 1)]),
    "SoftmaxCrossEntropyLoss": (([helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["y", "l"])],
                                 {"t": np.array([2, 0])}, ["y", "l"]),
                                [2, "c"], [(2, 4), (2, 7)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_template_serves_all_shapes(name):
    (nodes, parameters, outputs), dimensions, shapes = CASES[name]
    integers = {"i"} | ({"y"} if name == "ArgMax" else set())
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dimensions)],
        [
            helper.make_tensor_value_info(output, TensorProto.INT64 if output in integers else TensorProto.FLOAT, None)
            for output in outputs
        ],
        [numpy_helper.from_array(array, key) for key, array in parameters.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    model = glowstone.compile(proto, shapes={"x": shapes[0]})
    for shape in shapes:
        x = random.uniform(-2, 2, shape).astype(np.float32)
        results = model(x)
        results = results if isinstance(results, tuple) else (results,)
        for found, expected in zip(results, session.run(None, {"x": x}), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
