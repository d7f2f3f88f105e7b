"""Commands that look inside: what they write, and their exit codes."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import numpy as np
import onnx
import PIL.Image
import pytest

from glowstone import examples
from glowstone.cli import compare as compare_command
from glowstone.cli import demo as demo_command
from glowstone.cli.main import COMMANDS, main
from glowstone.errors import GlowstoneError
from glowstone.tools.compare import Comparison, Difference, Part
from glowstone.tools.fetch import DownloadError

DIGITS = str(examples.DIGITS)
SHAPE = ["--shape", "image=2,1,8,8"]


def test_every_command_has_a_help_text(capsys):
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.count("Usage:") == len(COMMANDS)


@pytest.mark.parametrize("reference", ["interpreter", "evaluator", "onnxruntime"])
def test_compare_agrees_and_says_so(reference, capsys):
    assert main(["compare", DIGITS, *SHAPE, "--reference", reference]) == 0
    assert f"cpu and {reference} agree" in capsys.readouterr().out


def test_compare_takes_inputs_from_files(tmp_path, capsys):
    np.save(tmp_path / "image.npy", examples.digit_images()[0][:1])
    assert main(["compare", DIGITS, "--reference", "evaluator", "-i", f"image={tmp_path / 'image.npy'}"]) == 0
    assert main(["compare", DIGITS, "-i", f"picture={tmp_path / 'image.npy'}"]) == 1
    assert main(["compare", DIGITS]) == 1
    assert "--shape image=n,1,8,8" in capsys.readouterr().err


def test_compare_of_a_backend_with_itself_is_wrong_usage(capsys):
    assert main(["compare", DIGITS, "--backend", "interpreter", "--reference", "interpreter"]) == 2


def test_a_difference_is_told_and_written(monkeypatch, tmp_path, capsys):
    model = onnx.load(DIGITS)
    part = Part(model, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    found = Comparison(7, Difference("sums2", "Conv conv2", 0.25, 1e-4), part)
    monkeypatch.setattr(compare_command, "compare_model", lambda *_: found)
    output = tmp_path / "part.onnx"
    assert main(["compare", DIGITS, *SHAPE, "-o", str(output)]) == 1
    out = capsys.readouterr().out
    assert all(text in out for text in ("sums2", "Conv conv2", "0.25", "0.0001"))
    assert onnx.load(output) == model
    with np.load(tmp_path / "part.npz") as arrays:
        assert arrays["image"].shape == (1, 1, 8, 8)


def test_run_takes_an_image(tmp_path, capsys):
    images, labels = examples.digit_images()
    PIL.Image.fromarray(np.round(images[0, 0] * 255).astype(np.uint8)).save(tmp_path / "digit.png")
    output = tmp_path / "results.npz"
    assert main(["run", DIGITS, "-i", f"image={tmp_path / 'digit.png'}", "-o", str(output)]) == 0
    with np.load(output) as results:
        assert results["probabilities"].argmax() == labels[0]


def test_run_takes_raw_elements_of_a_shape(tmp_path, capsys):
    images, labels = examples.digit_images()
    images[:2].astype("<f4").tofile(tmp_path / "images.raw")
    command = ["run", DIGITS, "-i", f"image={tmp_path / 'images.raw'}", "-o", str(tmp_path / "results.npz")]
    assert main(command) == 0
    with np.load(tmp_path / "results.npz") as results:
        assert results["probabilities"].argmax(axis=1).tolist() == labels[:2].tolist()
    assert main([*command, "--shape", "image=3,1,8,8"]) == 1
    assert "does not fit" in capsys.readouterr().err


def test_bench_writes_a_trace(tmp_path, capsys):
    trace = tmp_path / "trace.json"
    assert main(["bench", DIGITS, *SHAPE, "-n", "1", "--trace", str(trace)]) == 0
    names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"]]
    assert any("conv1" in name for name in names)


@pytest.mark.parametrize("options", [[], ["--compiled"]])
def test_inspect_draws_the_memory_plan_and_the_graph(tmp_path, options, capsys):
    memory, dot = tmp_path / "plan.svg", tmp_path / "graph.dot"
    assert main(["inspect", DIGITS, *SHAPE, *options, "--memory", str(memory), "--dot", str(dot)]) == 0
    assert ET.parse(memory).getroot().tag.endswith("svg")
    text = dot.read_text()
    assert text.startswith('digraph "digits"')
    assert ("Relu" in text) is not bool(options)  # fused where compiled
    assert ("instructions" in capsys.readouterr().out) is bool(options)


def test_the_demo_reads_digits_without_a_network(monkeypatch, capsys):
    def offline(_):
        raise DownloadError("no network")

    def refuse(_):
        raise GlowstoneError("ResNet-50 is not part of this test")

    monkeypatch.setattr(demo_command, "read_lines", offline)
    monkeypatch.setattr(demo_command, "time_resnet50", refuse)
    assert main(["demo"]) == 1
    err = capsys.readouterr().err
    assert "no network; reading digits instead" in err
    assert "not part of this test" in err


def test_the_demo_prints_how_many_digits_were_read(capsys):
    result = demo_command.read_digits(lambda _: None)
    assert result.right >= 0.97 * len(result.digits)
    demo_command._print_digits(demo_command.results(), result)
    assert f"{result.right} of 360" in capsys.readouterr().out


def test_inspect_shows_what_takes_the_time(capsys):
    assert main(["inspect", DIGITS, *SHAPE, "--profile"]) == 0
    assert "of limit" in capsys.readouterr().out
    assert main(["inspect", DIGITS, *SHAPE, "--profile", "--json"]) == 0
    profile = json.loads(capsys.readouterr().out)["profile"]
    assert {"name", "algorithm", "tile", "nanoseconds", "gflop_per_s", "gb_per_s", "share_of_limit"} <= set(
        profile["instructions"][0]
    )
    assert profile["limits"]["gflop_per_s"] > 0
