"""Indices that arrive with the data: none reads or writes outside, each is an error of the call or cut as specified.

The kernels' own bounds are proven in tests/unit/backends/cpu/test_memory_bounds.py; here it is the models' doors.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.reports import check_nodes, normal, one_node

import glowstone
from glowstone.errors import ExecutionError

X = normal(3, 4)
EXTREMES = (3, -4, 2**31, -(2**31), 2**62, -(2**63))
"""None of them is a row of X."""


def at(*numbers):
    return np.array(numbers, np.int64)


OPERATORS = {
    "Gather": lambda bad: one_node("Gather", X, at(0, bad)),
    "GatherElements": lambda bad: one_node("GatherElements", X, at(0, 1, bad, 2)[None]),
    "GatherND": lambda bad: one_node("GatherND", X, at(1, 0, bad, 0).reshape(2, 2)),
    "ScatterElements": lambda bad: one_node("ScatterElements", X, at(0, bad)[None], normal(1, 2)),
    "ScatterND": lambda bad: one_node("ScatterND", X, at(0, bad).reshape(2, 1), normal(2, 4)),
    "ScatterND that adds": lambda bad: one_node(
        "ScatterND", X, at(bad, 1).reshape(2, 1), normal(2, 4), reduction="add"
    ),
    "Scatter": lambda bad: one_node("Scatter", X, at(bad, 0)[None], normal(1, 2), opset=10),
    "MaxUnpool": lambda bad: one_node(
        "MaxUnpool", normal(1, 1, 2), at(0, bad if abs(bad) > 9 else 99)[None, None], kernel_shape=[2], strides=[2]
    ),
    "ArrayFeatureExtractor": lambda bad: one_node(
        "ArrayFeatureExtractor", normal(2, 3), at(bad, 1), domain="ai.onnx.ml"
    ),
    "RoiAlign": lambda bad: one_node("RoiAlign", normal(3, 1, 4, 4), np.float32([[0, 0, 2, 2]]), at(bad)),
    "ReverseSequence": lambda bad: one_node("ReverseSequence", normal(2, 4), at(1, 0, 2, bad)),
    "TensorScatter": lambda bad: one_node(
        "TensorScatter", normal(2, 1, 3, 2), normal(2, 1, 1, 2), at(0, bad), opset=24
    ),
    "RotaryEmbedding": lambda bad: one_node(
        "RotaryEmbedding", normal(1, 2, 2, 4), normal(3, 2), normal(3, 2), at(bad, 1)[None], opset=23
    ),
    "NegativeLogLikelihoodLoss": lambda bad: one_node("NegativeLogLikelihoodLoss", normal(2, 3), at(bad, 1)),
    "SoftmaxCrossEntropyLoss": lambda bad: one_node("SoftmaxCrossEntropyLoss", normal(2, 3), at(0, bad)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_index_out_of_range_is_an_error_of_the_call(name):
    """onnxruntime#27265 read the heap at a negative index; so may every operator that takes indices."""
    model, _ = OPERATORS[name](EXTREMES[0])
    if domain := model.graph.node[0].domain:
        model.opset_import.add(domain=domain, version=3)
    compiled = glowstone.compile(model)
    for bad in EXTREMES:
        _, feeds = OPERATORS[name](bad)
        with pytest.raises(ExecutionError, match="out of range") as caught:
            compiled.run(feeds)
        assert "the node" in str(caught.value.node)
        assert caught.value.operator
        assert caught.value.found is not None


def test_indices_that_the_specification_limits():
    """onnxruntime#27265, the other half: what is out of range here is cut, or counts for nothing."""
    far = 2**62
    values = np.float32([0, 1])
    check_nodes(
        one_node("OneHot", at(0, 2, -3, -4, 3, far, -far), np.array(3), values, fixed=[1]),
        one_node("Slice", X, at(-far), at(far), at(0), fixed=[1, 2, 3]),
        one_node("Slice", X, at(far), at(-far), at(0), at(-1), fixed=[1, 2, 3, 4]),
        one_node("Slice", X, at(1), at(far), at(1), at(far), fixed=[1, 2, 3, 4]),
        one_node("TopK", X, at(0), fixed=[1], results=2, axis=0),
        one_node("CumSum", X, np.array(-2), fixed=[1]),
        one_node("Trilu", X, np.array(far), fixed=[1]),
        one_node("Trilu", X, np.array(-far), fixed=[1]),
        expected=[
            [np.float32(np.eye(4)[[0, 2, 0, 3, 3, 3, 3], :3])],
            [X],
            [X[::-1]],
            [X[:, 1:2]],
            [X[:0], np.zeros((0, 4), np.int64)],
            [np.cumsum(X, axis=0)],
            [np.zeros_like(X)],
            [X],
        ],
    )
