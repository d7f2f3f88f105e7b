"""Shapes given by input and by symbolic dimension."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.stepped import BOOL, FLOAT, INT64, check, info, model_of, node

import glowstone
from glowstone.cli.main import main
from glowstone.errors import GlowstoneError, InputError, ShapeError


def pair():
    """Two inputs that share a dimension."""
    nodes = [node("Concat", ["x", "y"], ["both"], axis=1), node("Relu", ["both"], ["z"])]
    inputs = [info("x", FLOAT, ["batch", "left", 3]), info("y", FLOAT, ["batch", 2, 3])]
    return model_of(nodes, inputs, [info("z", FLOAT, ["batch", "all", 3])])


def found():
    """A model that runs in steps."""
    nodes = [node("Relu", ["x"], ["r"]), node("NonZero", ["r"], ["places"])]
    return model_of(nodes, [info("x", FLOAT, ["rows", "columns"])], [info("places", INT64, [2, "n"])])


GIVEN = [
    ({"batch": 4, "left": 5}, [4, 5, 3], [4, 2, 3]),
    ({"x": (4, "left", 3), "left": np.int64(5)}, [4, 5, 3], [4, 2, 3]),
    ({"x": (4, 5, 3), "batch": 4}, [4, 5, 3], [4, 2, 3]),
    ({"y": ("batch", 2, 3), "left": 7, "batch": 2}, [2, 7, 3], [2, 2, 3]),
    ({"y": [6, 2, 3], "left": 0}, [6, 0, 3], [6, 2, 3]),
]


@pytest.mark.parametrize(("shapes", "x", "y"), GIVEN)
def test_symbols_and_inputs_may_be_mixed(shapes, x, y):
    compiled = glowstone.compile(pair(), shapes=shapes)
    assert compiled.report()["reference_shapes"] == {"x": x, "y": y}
    random = np.random.default_rng(1)
    for batch, left in ((4, 5), (1, 1), (3, 0)):
        feeds = {"x": random.standard_normal((batch, left, 3)), "y": random.standard_normal((batch, 2, 3))}
        check(pair(), compiled, {name: array.astype(np.float32) for name, array in feeds.items()})


def test_what_is_not_given_is_nominal():
    compiled = glowstone.compile(pair(), shapes={"batch": 9})
    shapes = compiled.report()["reference_shapes"]
    assert [shapes["x"][0], shapes["y"][0]] == [9, 9]
    assert shapes["x"][1] > 0


REFUSED = [
    ({"bach": 4}, ShapeError, "bach", "inputs: x, y; symbolic dimensions: batch, left"),
    ({"all": 4}, ShapeError, "all", "inputs: x, y; symbolic dimensions: batch, left"),
    ({"x": (4, 5, 3), "batch": 5}, ShapeError, "disagree about dimension 'batch'", "4"),
    ({"x": (4, 5, 3), "y": (5, 2, 3)}, ShapeError, "disagree about dimension 'batch'", "4"),
    ({"x": (4, "right", 3)}, ShapeError, "another shape", "symbolic dimensions: batch, left"),
    ({"x": ("left", 5, 3)}, ShapeError, "another shape", "symbolic dimensions: batch, left"),
    ({"x": (4, 5)}, ShapeError, "another shape", "batch"),
    ({"x": (4, 5, 4)}, ShapeError, "another shape", "batch"),
    ({"x": 4}, ShapeError, "sequence of extents", "4"),
    ({"batch": (4, 4)}, ShapeError, "one number", "batch"),
    ({"batch": -1}, InputError, "batch", "0 or more"),
    ({"batch": True}, InputError, "batch", "0 or more"),
    ({"batch": 1.5}, InputError, "batch", "0 or more"),
    ({"batch": "left"}, InputError, "batch", "0 or more"),
    ({"x": None}, InputError, "x", "0 or more"),
    ({"x": (1.5, 5, 3)}, InputError, "x", "0 or more"),
]


@pytest.mark.parametrize(("shapes", "error", "what", "listed"), REFUSED)
def test_others_are_refused_with_those_there_are(shapes, error, what, listed):
    with pytest.raises(GlowstoneError) as caught:
        glowstone.compile(pair(), shapes=shapes)
    assert type(caught.value) is error
    assert what in str(caught.value)
    assert listed in str(caught.value)


def test_a_model_in_steps_takes_symbols():
    compiled = glowstone.compile(found(), shapes={"rows": 4, "columns": 3})
    check(found(), compiled, {"x": np.eye(2, 5, dtype=np.float32)})
    assert compiled.report()["parts"][0]["reference_shapes"] == {"x": [4, 3]}
    with pytest.raises(ShapeError, match="symbolic dimensions: rows, columns"):
        glowstone.compile(found(), shapes={"n": 4})


def test_symbols_are_shown():
    assert repr(glowstone.compile(pair())) == (
        "<Model: x: float32[batch, left, 3], y: float32[batch, 2, 3] -> z: float32[batch, all, 3]>"
    )
    assert repr(glowstone.compile(found())) == "<SteppedModel: x: float32[rows, columns] -> places: int64[2, n]>"
    scalar = model_of([node("Not", ["c"], ["d"])], [info("c", BOOL, [])], [info("d", BOOL, [])])
    assert repr(glowstone.compile(scalar)) == "<Model: c: bool[] -> d: bool[]>"


def test_the_command_line_takes_and_shows_symbols(tmp_path, capsys):
    path = tmp_path / "pair.onnx"
    path.write_bytes(pair().SerializeToString())
    assert main(["inspect", str(path)]) == 0
    assert "symbols     batch, left" in capsys.readouterr().out
    assert main(["inspect", str(path), "--compiled", "--json", "--shape", "batch=4", "--shape", "x=batch,5,3"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["compiled"]["reference_shapes"] == {"x": [4, 5, 3], "y": [4, 2, 3]}
    assert [one["shape"] for one in shown["inputs"]] == [[4, 5, 3], [4, 2, 3]]
    assert main(["bench", str(path), "--shape", "batch=4", "--shape", "left=2", "-n", "1"]) == 0
    assert main(["inspect", str(path), "--shape", "bach=4"]) != 0
    assert "symbolic dimensions: batch, left" in capsys.readouterr().err
