"""Steps of optimizers against onnx's reference evaluator, as machine code."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import ModelError

DOMAIN = "ai.onnx.preview.training"
KINDS = {"Adagrad": 3, "Adam": 4, "Momentum": 3}


def model_of(kind, groups, element=TensorProto.FLOAT, extra=0, **attributes):
    """Tensors of the shapes [2], [3] ... at once, with the rate and the number of steps as inputs."""
    names = [f"v{index}" for index in range(KINDS[kind] * groups + extra)]
    shapes = [[2 + index % groups] for index in range(len(names))]
    inputs = [helper.make_tensor_value_info(name, element, shape) for name, shape in zip(names, shapes, strict=True)]
    rate = helper.make_tensor_value_info("rate", TensorProto.FLOAT, [])
    steps = helper.make_tensor_value_info("steps", TensorProto.INT64, [])
    results = [f"r{index}" for index in range((KINDS[kind] - 1) * groups)]
    outputs = [helper.make_tensor_value_info(name, element, [2 + index % groups]) for index, name in enumerate(results)]
    node = helper.make_node(kind, ["rate", "steps", *names], results, domain=DOMAIN, **attributes)
    graph = helper.make_graph([node], "step", [rate, steps, *inputs], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1)], ir_version=9)


CASES = [
    ("Adagrad", {"norm_coefficient": 0.01, "decay_factor": 0.1, "epsilon": 1e-4}),
    ("Adam", {"norm_coefficient": 0.01, "norm_coefficient_post": 0.05, "alpha": 0.8, "beta": 0.95, "epsilon": 1e-3}),
    ("Momentum", {"norm_coefficient": 0.01, "alpha": 0.9, "beta": 0.4, "mode": "standard"}),
    ("Momentum", {"norm_coefficient": 0.01, "alpha": 0.9, "beta": 0.4, "mode": "nesterov"}),
]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("kind", "attributes"), CASES)
def test_steps(kind, attributes, groups):
    random = np.random.default_rng(71)
    proto = model_of(kind, groups, **attributes)
    feeds = {port.name: random.uniform(0.1, 2, 2 + index % groups) for index, port in enumerate(proto.graph.input[2:])}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    model = glowstone.compile(proto)
    for steps in (0, 1, 7):
        given = {"rate": np.array(0.1, np.float32), "steps": np.array(steps), **feeds}
        found = model.run(given)
        wide = {name: array.astype(np.float64) if name != "steps" else array for name, array in given.items()}
        for mine, expected in zip(found.values(), ReferenceEvaluator(proto).run(None, wide), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=2e-6)


def test_float64():
    proto = model_of("Momentum", 1, TensorProto.DOUBLE, alpha=0.5, beta=1.0, norm_coefficient=0.0, mode="standard")
    feeds = {"rate": np.array(0.25, np.float32), "steps": np.array(3), "v0": np.ones(2), "v1": np.array([1e-12, 2.0])}
    found = glowstone.compile(proto).run({**feeds, "v2": np.array([0.0, 4.0])})
    np.testing.assert_allclose(found["r0"], [1 - 0.25e-12, 0], rtol=1e-15)


@pytest.mark.parametrize(
    ("kind", "extra", "attributes", "message"),
    [("Adam", 1, {}, "come in groups"), ("Momentum", 0, {"mode": "fast"}, "attribute mode")],
)
def test_what_is_refused(kind, extra, attributes, message):
    with pytest.raises(ModelError, match=message):
        glowstone.compile(model_of(kind, 1, extra=extra, **attributes))
