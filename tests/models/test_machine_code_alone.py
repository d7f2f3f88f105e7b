"""Once a model is compiled, nothing of it runs in Python; `helpers.machine_code` says what is taken away.

`test_networks.py` runs every other model so.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.inputs import encoder_inputs
from helpers.machine_code import RanInPythonError, machine_code_alone
from helpers.models import save_small_convolution
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.graph import Graph, evaluate_graph
from glowstone.graph.operator import OPERATORS
from glowstone.lir.operation import OPERATIONS
from glowstone.ops import Relu
from glowstone.tools import recognizer, resnet50


def cases() -> dict:
    line = recognizer.prepare(recognizer.render_line("machine code"), 320)
    return {
        "recognizer": {recognizer.INPUT_NAME: line},
        "encoder": encoder_inputs(2, 16),
        "resnet": {resnet50.INPUT_NAME: resnet50.sample_image()},
    }


@pytest.mark.parametrize("name", ["recognizer", "encoder", "resnet"])
def test_models_run_without_python(name, request):
    path, peer = (request.getfixturevalue(f"{name}_{part}") for part in ("path", "peer"))
    inputs = cases()[name]
    model = glowstone.compile(path, shapes={key: array.shape for key, array in inputs.items()})
    with machine_code_alone():
        found = model.run(inputs)
    assert model.report()["host_steps"] == 0
    for output, expected in peer.run(inputs).items():
        assert_agrees(found[output], expected, output)


def test_python_is_taken_away_and_given_back(tmp_path):
    assert len(OPERATORS) > 20
    assert len(OPERATIONS) > 10
    evaluator = ReferenceEvaluator(str(save_small_convolution(tmp_path / "model.onnx")))
    x = np.zeros((1, 3, 48, 2), np.float32)
    doors = [
        lambda: evaluator.run(None, {"x": x}),
        *(lambda kind=kind: kind.reference(None, x) for kind in OPERATORS.values()),
        *(lambda kind=kind: kind.interpret(None, [x], ()) for kind in OPERATIONS.values()),
    ]
    with machine_code_alone():
        for door in doors:
            with pytest.raises(RanInPythonError):
                door()
    assert Relu().reference(np.array([-1.0, 2.0])).tolist() == [0, 2]
    assert evaluator.run(None, {"x": x})[0].shape == (1, 8, 48, 2)
    assert evaluate_graph(Graph("empty"), {}) == {}
