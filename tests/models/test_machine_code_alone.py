"""Once a model is compiled, nothing of it runs in Python: every `reference` and `interpret` may be gone."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.inputs import encoder_inputs

import glowstone
from glowstone.graph.operator import OPERATORS
from glowstone.lir.operation import OPERATIONS
from glowstone.tools import recognizer, resnet50


def forbidden(*_):
    raise AssertionError("a model ran in Python")


@pytest.fixture
def forbid_python(monkeypatch):
    """Call it, and from then on the meaning of no operator and no operation can be computed in Python."""

    def forbid():
        assert len(OPERATORS) > 20
        assert len(OPERATIONS) > 10
        for kind in OPERATORS.values():
            monkeypatch.setattr(kind, "reference", forbidden)
        for kind in OPERATIONS.values():
            monkeypatch.setattr(kind, "interpret", forbidden)

    return forbid


def cases() -> dict:
    line = recognizer.prepare(recognizer.render_line("machine code"), 320)
    return {
        "recognizer": {recognizer.INPUT_NAME: line},
        "encoder": encoder_inputs(2, 16),
        "resnet": {resnet50.INPUT_NAME: resnet50.sample_image()},
    }


@pytest.mark.parametrize("name", ["recognizer", "encoder", "resnet"])
def test_models_run_without_python(name, forbid_python, request):
    path, peer = (request.getfixturevalue(f"{name}_{part}") for part in ("path", "peer"))
    inputs = cases()[name]
    model = glowstone.compile(path, shapes={key: array.shape for key, array in inputs.items()})
    forbid_python()
    with pytest.raises(AssertionError, match="ran in Python"):
        OPERATORS["Relu"]().reference(np.zeros(1))
    found = model.run(inputs)
    for output, expected in peer.run(inputs).items():
        assert_agrees(found[output], expected, output)
