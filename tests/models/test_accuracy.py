"""The three models against ONNX Runtime on the same file and inputs."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.inputs import encoder_inputs
from helpers.lines import sample_lines

from glowstone.tools import recognizer, resnet50


def assert_outputs_agree(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert_agrees(found[name], array, name)


def recognizer_batch(width: int, batch: int) -> dict:
    images = [recognizer.prepare(recognizer.render_line(text), width) for text in sample_lines(batch, seed=1)]
    return {recognizer.INPUT_NAME: np.concatenate(images)}


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("width", [160, 320, 500])
def test_recognizer(recognizer_model, recognizer_peer, width, batch):
    inputs = recognizer_batch(width, batch)
    assert_outputs_agree(recognizer_model.run(inputs), recognizer_peer.run(inputs))


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("length", [8, 128, 512])
def test_sentence_encoder(encoder_model, encoder_peer, length, batch):
    inputs = encoder_inputs(batch, length)
    assert_outputs_agree(encoder_model.run(inputs), encoder_peer.run(inputs))


def test_resnet50(resnet_model, resnet_peer):
    results = []
    for seed in (0, 1):
        inputs = {resnet50.INPUT_NAME: resnet50.sample_image(seed)}
        results.append(resnet_model.run(inputs)[resnet50.OUTPUT_NAME])
        assert_outputs_agree({resnet50.OUTPUT_NAME: results[-1]}, resnet_peer.run(inputs))
    assert len(np.unique(results[0])) >= 100
    assert np.abs(results[0] - results[1]).max() > 0.05 * results[0].max()


def test_fifty_lines_are_read_as_onnxruntime_reads_them(recognizer_model, recognizer_peer, recognizer_path):
    characters = recognizer.read_characters(recognizer_path)
    lines = sample_lines(50)
    ours, theirs = [], []
    for line in lines:
        inputs = {recognizer.INPUT_NAME: recognizer.prepare(recognizer.render_line(line, size=24))}
        for texts, model in ((ours, recognizer_model), (theirs, recognizer_peer)):
            (scores,) = model.run(inputs).values()
            texts.extend(recognizer.decode(scores, characters))
    assert ours == theirs
    assert sum(text.replace(" ", "") == line.replace(" ", "") for text, line in zip(ours, lines, strict=True)) >= 40
