"""Tuning: files that name choices, every choice against ONNX Runtime, and the command that measures."""

from __future__ import annotations

import json
import pickle

import numpy as np
import onnxruntime
import pytest
from helpers.models import save_convolution_chain, save_matrix_product

import glowstone
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import (
    DIRECT,
    MOST_BLOCKS,
    PANELS,
    WINOGRAD,
    ConvolutionCase,
    ConvolutionChoice,
    ProductCase,
    ProductChoice,
    Tuning,
    read_tuning,
)
from glowstone.cli.main import main
from glowstone.errors import InputError

CHANNELS, EXTENT = 40, 9
CASE = ConvolutionCase(CHANNELS, CHANNELS, 1, (3, 3), (1, 1), (1, 1), 1, EXTENT, EXTENT)
PRODUCT = ProductCase(7, 33, 50)
CHOICES = [ConvolutionChoice(DIRECT, blocks) for blocks in range(1, MOST_BLOCKS + 1)]
CHOICES += map(ConvolutionChoice, WINOGRAD)


@pytest.fixture
def chain(tmp_path):
    return save_convolution_chain(tmp_path / "chain.onnx", 2, CHANNELS, EXTENT)


def tuning_file(folder, choices):
    path = folder / "tuning.json"
    Tuning(choices).write(path, Target.host().text)
    return path


def check(model, path, x):
    (expected,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    (found,) = model.run({"x": x}).values()
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_form_of_a_convolution_is_taken_and_right(choice, chain, tmp_path):
    model = glowstone.compile(chain, tuning=tuning_file(tmp_path, {CASE: choice}))
    algorithms = {one["algorithm"].split()[0] for one in model.report()["instructions"]}
    wanted = "WinogradConvolution" if choice.algorithm in WINOGRAD else "BlockedConvolution"
    other = ({"WinogradConvolution", "BlockedConvolution"} - {wanted}).pop()
    assert wanted in algorithms
    assert other not in algorithms
    check(model, chain, np.random.default_rng(0).standard_normal((1, CHANNELS, EXTENT, EXTENT), dtype=np.float32))


@pytest.mark.parametrize("panel", PANELS)
def test_every_form_of_a_product_is_right(panel, tmp_path):
    path = save_matrix_product(tmp_path / "product.onnx", PRODUCT.rows, PRODUCT.depth, PRODUCT.columns)
    model = glowstone.compile(path, tuning=tuning_file(tmp_path, {PRODUCT: ProductChoice(panel)}))
    assert any(one["algorithm"] == f"PackedMatMul {panel}" for one in model.report()["instructions"])
    check(model, path, np.random.default_rng(1).standard_normal((PRODUCT.rows, PRODUCT.depth), dtype=np.float32))


def test_strict_numerics_beat_the_file(chain, tmp_path):
    file = tuning_file(tmp_path, {CASE: ConvolutionChoice("winograd_4x4")})
    model = glowstone.compile(chain, tuning=file, numerics="strict")
    assert not any("Winograd" in one["algorithm"] for one in model.report()["instructions"])


def test_the_cache_tells_tunings_apart(chain, tmp_path):
    algorithms = []
    for choice in (CHOICES[0], CHOICES[-1], CHOICES[0]):
        model = glowstone.compile(chain, tuning=tuning_file(tmp_path, {CASE: choice}))
        algorithms.append({one["algorithm"].split()[0] for one in model.report()["instructions"]})
    assert algorithms[0] == algorithms[2] != algorithms[1]


def test_choices_travel_with_a_pickled_model(chain, tmp_path):
    file = tuning_file(tmp_path, {CASE: ConvolutionChoice("winograd_4x4")})
    content = pickle.dumps(glowstone.compile(chain, tuning=file))
    file.unlink()
    report = pickle.loads(content).report()
    assert any("Winograd" in one["algorithm"] for one in report["instructions"])


def test_a_file_reads_back(tmp_path):
    choices = {CASE: ConvolutionChoice(DIRECT, 2), PRODUCT: ProductChoice(24)}
    assert read_tuning(tuning_file(tmp_path, choices), Target.host().text).choices == choices


def test_a_file_for_another_target_is_refused(chain, tmp_path):
    path = tmp_path / "other.json"
    Tuning({CASE: CHOICES[0]}).write(path, "aarch64-unknown-linux-gnu/cortex-a76")
    with pytest.raises(InputError, match="another target"):
        glowstone.compile(chain, tuning=path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(format=3),
        lambda content: content.pop("choices"),
        lambda content: content["choices"][0].pop("take"),
        lambda content: content["choices"][0]["take"].update(algorithm="magic"),
        lambda content: content["choices"][0]["take"].update(blocks=99),
        lambda content: content["choices"][0]["convolution"].update(kernel=[3, -3]),
        lambda content: content["choices"][0]["convolution"].update(kernel=[[3], 3]),
        lambda content: content["choices"].append([]),
        lambda content: content["choices"].append({"pooling": {}, "take": {}}),
    ],
)
def test_a_broken_file_is_refused(change, chain, tmp_path):
    path = tuning_file(tmp_path, {CASE: CHOICES[0]})
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="not a tuning file"):
        glowstone.compile(chain, tuning=path)


def test_a_file_that_is_not_there_is_refused(chain, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        glowstone.compile(chain, tuning=tmp_path / "missing.json")


def test_the_command_writes_a_file_that_compile_takes(chain, tmp_path, capsys):
    output = tmp_path / "made.json"
    assert main(["tune", str(chain), "-o", str(output), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["count"] == 2
    assert entry["best"] <= entry["by_rule"]
    check(glowstone.compile(chain, tuning=output), chain, np.ones((1, CHANNELS, EXTENT, EXTENT), np.float32))
    assert main(["tune", str(chain), "-o", str(output)]) == 0
    assert "by the rules" in capsys.readouterr().out
