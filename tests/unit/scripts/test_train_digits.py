"""The script that trained the digit classifier: its gradients are right, and the model file is what it trained."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from glowstone.tools.execution import run_onnxruntime

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "train_digits.py"
STEP = 1e-6


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("train_digits", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def batch():
    random = np.random.default_rng(1)
    return random.uniform(0, 1, (5, 1, 8, 8)), np.array([0, 3, 9, 3, 7])


def loss(script, parameters, images, labels) -> float:
    """The mean cross entropy, in float64."""
    scores = script.scores(parameters, images)[0]
    scores = scores - scores.max(axis=1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return float(-np.log(chances[np.arange(len(labels)), labels]).mean())


def test_gradients_are_those_of_the_cross_entropy(script, batch):
    random = np.random.default_rng(2)
    parameters = {name: value.astype(np.float64) for name, value in script.initial_parameters(random).items()}
    gradients = script.cross_entropy_gradients(parameters, *batch)
    assert gradients.keys() == parameters.keys()
    for name, value in parameters.items():
        for position in random.integers(0, value.size, 4):
            sides = []
            for sign in (1, -1):
                moved = value.copy()
                moved.flat[position] += sign * STEP
                sides.append(loss(script, {**parameters, name: moved}, *batch))
            slope = (sides[0] - sides[1]) / (2 * STEP)
            assert gradients[name].flat[position] == pytest.approx(slope, rel=2e-2, abs=2e-4)


def test_the_model_file_computes_what_was_trained(script, batch):
    parameters = script.initial_parameters(np.random.default_rng(3))
    images = batch[0].astype(np.float32)
    scores = script.scores(parameters, images)[0]
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    found = run_onnxruntime(script.as_onnx(parameters, 0.5), {"image": images})
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)


def test_shifts_move_by_a_pixel_at_most(script):
    images = np.zeros((64, 1, 8, 8))
    images[:, :, 4, 4] = 1
    moved = script.shifted(images, np.random.default_rng(0))
    rows, columns = np.argwhere(moved[:, 0] == 1)[:, 1:].T
    assert set(rows) == set(columns) == {3, 4, 5}
