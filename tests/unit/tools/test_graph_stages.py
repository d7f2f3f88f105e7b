"""Passes by name on text, and graphs at every stage."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from helpers.models import save_small_convolution

import glowstone
from glowstone import examples
from glowstone.cli.main import main
from glowstone.errors import InputError
from glowstone.graph import Tensor, evaluate_graph, named_tensors, parse_graph, print_graph
from glowstone.lir.parser import parse_program
from glowstone.tools.graph_stages import STAGES, graph_at_stage, run_passes
from glowstone.tools.tensor_files import load_tensors, save_tensors, tensor_file
from glowstone.types import ElementType

GRAPH = """glowstone.graph 1
input %x: f32[2,3]
%0 = Identity(%x) : f32[2,3]
%1 = Constant{tensor=f32[]{2.0}}() : f32[]
%2 = Mul(%1, %1) : f32[]
%3 = Mul(%0, %2) : f32[2,3]
output y = %3
"""
PROGRAM = """glowstone.lir 1
input %x: f32[4]
output %y: f32[4]
activation %unread: f32[4]
{
  alloc %unread
  Copy(out %unread[4], in %x[4])
  Copy(out %y[4], in %x[4])
  dealloc %unread
}
"""


def test_graph_passes_by_name():
    text = run_passes(GRAPH, ["eliminate_identities", "fold_constants"], {})
    assert "Identity" not in text
    assert text.count("Mul") == 1
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(evaluate_graph(parse_graph(text), {"x": x})["y"], 4 * x)
    assert run_passes(GRAPH, [], {}) == print_graph(parse_graph(GRAPH))


def test_low_level_passes_by_name():
    text = run_passes(PROGRAM, ["eliminate_dead_stores", "simplify", "shorten_lifetimes"], {})
    assert "unread" not in text
    assert len(list(parse_program(text).instructions())) == 1


@pytest.mark.parametrize(("text", "passes"), [(GRAPH, ["simplify"]), (PROGRAM, ["lower"]), ("hello", []), ("", [])])
def test_unknown_passes_and_texts_are_refused(text, passes):
    with pytest.raises(InputError):
        run_passes(text, passes, {})


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_means_the_same(stage, tmp_path):
    path = save_small_convolution(tmp_path / "model.onnx")
    graph = graph_at_stage(path, {"x": (1, 3, 48, 7)}, stage)
    x = np.random.default_rng(0).standard_normal((1, 3, 48, 7)).astype(np.float32)
    expected = evaluate_graph(graph_at_stage(path, {"x": x.shape}, "imported"), {"x": x})["y"]
    np.testing.assert_allclose(evaluate_graph(graph, {"x": x})["y"], expected, atol=1e-5)


def test_constants_travel_beside_the_text(tmp_path):
    graph = graph_at_stage(examples.DIGITS, {}, "canonical")
    half = Tensor(np.arange(3).astype(ElementType.BF16.dtype))
    save_tensors(tensor_file(tmp_path / "model.ir"), {**named_tensors(graph), "half": half})
    tensors = load_tensors(tmp_path / "model.npz")
    assert tensors["half"] == half
    assert print_graph(parse_graph(print_graph(graph), tensors)) == print_graph(graph)
    assert load_tensors(tmp_path / "nothing.npz") == {}


def test_the_commands(tmp_path, capsys):
    text = tmp_path / "digits.ir"
    assert main(["export", str(examples.DIGITS), "--stage", "canonical", "-o", str(text)]) == 0
    capsys.readouterr()
    assert main(["opt", str(text), "--passes", "lower, fuse_epilogues"]) == 0
    assert "Fused{" in capsys.readouterr().out
    assert main(["opt", str(text), "--passes", "no_such_pass"]) == 1
    assert "fold_constants" in capsys.readouterr().err
    model = tmp_path / "digits.onnx"
    assert main(["export", str(examples.DIGITS), "--stage", "canonical", "-o", str(model)]) == 0
    onnx.checker.check_model(onnx.load(model), full_check=True)
    inputs = {examples.DIGITS_INPUT: examples.digit_images()[0][:3]}
    first, again = (
        glowstone.compile(one, shapes={"image": (3, 1, 8, 8)}).run(inputs) for one in (examples.DIGITS, model)
    )
    np.testing.assert_allclose(first["probabilities"], again["probabilities"], atol=1e-6)
