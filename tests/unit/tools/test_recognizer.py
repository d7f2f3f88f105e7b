"""Rendering, preparing and decoding text lines."""

from __future__ import annotations

import numpy as np

from glowstone.tools.recognizer import SAMPLE_LINES, decode, prepare, render_line


def one_hot(*classes: int, count: int = 5) -> np.ndarray:
    return np.eye(count, dtype=np.float32)[list(classes)][None]


def test_decoding_merges_repetitions_and_drops_blanks():
    characters = ("", "a", "b", "c", " ")
    assert decode(one_hot(0, 1, 1, 0, 1, 2, 2, 4, 3, 0), characters) == ["aab c"]
    assert decode(one_hot(0, 0, 0), characters) == [""]
    assert decode(one_hot(3), characters) == ["c"]


def test_decoding_keeps_batch_entries_apart():
    scores = np.concatenate([one_hot(1, 0, 2), one_hot(2, 2, 0)])
    assert decode(scores, ("", "a", "b", "c", " ")) == ["ab", "b"]


def test_rendered_lines_differ_and_grow_with_their_text():
    images = [render_line(text) for text in SAMPLE_LINES]
    assert len({image.tobytes() for image in images}) == len(images)
    assert all(image.dtype == np.uint8 and image.min() < 50 and image.max() == 255 for image in images)
    assert render_line("ii").shape[1] < render_line("iiiiiiii").shape[1]


def test_preparing_keeps_proportions_and_pads_with_the_middle():
    image = np.zeros((24, 60, 3), np.uint8)
    image[..., 0] = 255
    prepared = prepare(image, 160)
    assert prepared.shape == (1, 3, 48, 160)
    assert prepared.dtype == np.float32
    np.testing.assert_array_equal(prepared[0, 2, :, :120], 1.0)
    np.testing.assert_array_equal(prepared[0, :2, :, :120], -1.0)
    np.testing.assert_array_equal(prepared[..., 120:], 0.0)


def test_preparing_without_a_width_rounds_up_and_squeezes_what_is_wider():
    image = np.full((48, 101, 3), 255, np.uint8)
    assert prepare(image).shape == (1, 3, 48, 104)
    assert prepare(image, 64).shape == (1, 3, 48, 64)
    np.testing.assert_array_equal(prepare(image, 64), 1.0)
