"""Classifying image files with the digit classifier that the package ships."""

from __future__ import annotations

import json

import numpy as np
import PIL.Image
import pytest

import glowstone
from glowstone import examples
from glowstone.cli.main import main
from glowstone.errors import InputError
from glowstone.tools.classification import best_classes, classify
from glowstone.tools.images import Preparation

COUNT = 6


@pytest.fixture(scope="module")
def digit_files(tmp_path_factory):
    """Image files, and the digits on them."""
    folder = tmp_path_factory.mktemp("digits")
    images, labels = examples.digit_images()
    files = []
    for index, suffix in zip(range(COUNT), ("png", "pgm", "jpg") * COUNT, strict=False):
        file = folder / f"{index}.{suffix}"
        PIL.Image.fromarray(np.round(images[index, 0] * 255).astype(np.uint8)).save(file)
        files.append(file)
    return files, labels[:COUNT].tolist()


def test_the_example_is_small_and_right_about_images_it_has_not_seen():
    images, labels = examples.digit_images()
    assert examples.DIGITS.stat().st_size < 100_000
    model = glowstone.compile(examples.DIGITS, shapes={examples.DIGITS_INPUT: images.shape})
    probabilities = model.run({examples.DIGITS_INPUT: images})[examples.DIGITS_OUTPUT]
    assert (probabilities.argmax(axis=1) == labels).mean() >= 0.97
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)


def test_files_are_classified_in_order(digit_files):
    files, digits = digit_files
    found = list(classify(examples.DIGITS, files, Preparation(), count=3))
    assert [one.image for one in found] == files
    assert [one.guesses[0].number for one in found] == digits
    assert all(len(one.guesses) == 3 for one in found)


def test_best_classes_and_labels():
    scores = np.float32([0.1, 0.7, 0.7, 0.2])
    guesses = best_classes(scores, ["a", "b", "c", "d"], 3)
    assert [guess.label for guess in guesses] == ["b", "c", "d"]
    assert best_classes(scores, [], 1)[0].label == "1"
    with pytest.raises(InputError, match="do not fit"):
        best_classes(scores, ["a"], 1)


def test_the_command(digit_files, tmp_path, capsys):
    files, digits = digit_files
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(f"digit {number}" for number in range(10)))
    command = ["classify", str(examples.DIGITS), *map(str, files[:2]), "--labels", str(labels), "-k", "2"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert str(files[0]) in out
    assert f"digit {digits[0]}" in out
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["classes"][0]["number"] for one in report] == digits[:2]
    assert main([*command, "--mean", "one"]) == 2
