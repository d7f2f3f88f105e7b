"""Every instruction of the three models, as machine code and as interpreted; see `helpers.instructions`."""

from __future__ import annotations

from helpers.inputs import encoder_inputs
from helpers.instructions import assert_instructions_agree

from glowstone.tools import recognizer, resnet50


def test_sentence_encoder(encoder_model):
    assert_instructions_agree(encoder_model, encoder_inputs(1, 128))


def test_recognizer(recognizer_model):
    image = recognizer.prepare(recognizer.render_line("Glowstone 42"), 320)
    assert_instructions_agree(recognizer_model, {recognizer.INPUT_NAME: image})


def test_resnet50(resnet_model):
    assert_instructions_agree(resnet_model, {resnet50.INPUT_NAME: resnet50.sample_image(0)})
