"""Random small models through the whole compiler to machine code, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from helpers.agreement import assert_agrees
from helpers.optional_passes import OPTIONAL_PASSES
from helpers.random_models import random_convnet, random_transformer

import glowstone

CONVNETS = range(100, 112)
TRANSFORMERS = range(200, 206)


def expected_outputs(model: bytes, inputs: dict) -> dict:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def assert_runs_right(model: bytes, inputs: dict, **arguments: object) -> None:
    compiled = glowstone.compile(model, shapes={name: array.shape for name, array in inputs.items()}, **arguments)
    found = compiled.run(inputs)
    for name, array in expected_outputs(model, inputs).items():
        assert_agrees(found[name], array, name)


@pytest.mark.parametrize("seed", CONVNETS)
def test_convolutional_networks(seed):
    assert_runs_right(*random_convnet(seed), options={"check": True})


@pytest.mark.parametrize("seed", TRANSFORMERS)
def test_transformer_blocks(seed):
    assert_runs_right(*random_transformer(seed), options={"check": True})


@pytest.mark.parametrize("make", [random_convnet, random_transformer])
def test_without_any_optional_pass(make):
    assert_runs_right(*make(7), options={"skip_passes": OPTIONAL_PASSES})


@pytest.mark.parametrize("make", [random_convnet, random_transformer])
def test_strict_numerics(make):
    assert_runs_right(*make(8), numerics="strict")


@pytest.mark.parametrize("seed", range(6))
def test_random_halves_of_the_passes(seed):
    random = np.random.default_rng(seed)
    skipped = [name for name in OPTIONAL_PASSES if random.integers(2)]
    assert_runs_right(*random_convnet(300 + seed), options={"skip_passes": skipped})


def test_another_shape_of_a_dynamic_model():
    model, inputs = random_transformer(9)
    compiled = glowstone.compile(model)
    for batch, length in [(1, 1), (3, 7), (2, 16), (5, 2)]:
        tokens = np.random.default_rng(length).standard_normal((batch, length, inputs["tokens"].shape[2]))
        feed = {"tokens": tokens.astype(np.float32)}
        for name, array in expected_outputs(model, feed).items():
            assert_agrees(compiled.run(feed)[name], array, name)
