"""The seeded ResNet-50: a valid model whose output tells something about arithmetic."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from glowstone.tools.resnet50 import INPUT_NAME, INPUT_SHAPE, OUTPUT_NAME, build_resnet50, sample_image


@pytest.fixture(scope="module")
def content() -> bytes:
    return build_resnet50(seed=0)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(content):
    digests = {hashlib.sha256(build_resnet50(seed)).hexdigest() for seed in (0, 1)}
    assert len(digests) == 2
    assert hashlib.sha256(content).hexdigest() in digests


def test_the_model_is_valid_and_has_one_input(content):
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model)
    assert [one.name for one in model.graph.input] == [INPUT_NAME]
    assert [one.name for one in model.graph.output] == [OUTPUT_NAME]
    assert not any(node.op_type == "ConstantOfShape" for node in model.graph.node)


def test_variances_are_in_range_and_no_weight_is_constant(content):
    graph = onnx.load_from_string(content).graph
    arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    variances = [arrays[node.input[4]] for node in graph.node if node.op_type == "BatchNormalization"]
    assert len(variances) == 53
    assert all(array.min() >= 0.5 and array.max() <= 2.0 for array in variances)
    assert all(array.std() > 0 for array in arrays.values() if array.dtype == np.float32)


def test_the_outputs_are_many_and_change_with_the_input(content):
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    first, second = (session.run(None, {INPUT_NAME: sample_image(seed)})[0] for seed in (0, 1))
    assert sample_image().shape == INPUT_SHAPE
    assert len(np.unique(first)) >= 100
    assert first.max() < 0.5
    assert np.abs(first - second).max() > 0.05 * first.max()
