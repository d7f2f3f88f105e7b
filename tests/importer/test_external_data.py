"""Tensors kept in other files: read from the model's folder alone, from plain files alone, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowstone.errors import ModelError
from glowstone.graph import evaluate_graph
from glowstone.importer import import_model, open_model

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def external_model(folder: Path, location: object, **entries: object) -> Path:
    """A model y = x + w in the folder, with w [2, 3] at this place."""
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        w.external_data.add(key=key, value=str(value))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", ports[:1], ports[1:], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def import_path(path: Path) -> np.ndarray:
    graph = import_model(open_model(path))
    return evaluate_graph(graph, {"x": np.zeros((2, 3), np.float32)})["y"]


def refused(path: Path, message: str) -> ModelError:
    with pytest.raises(ModelError, match=message) as caught:
        import_model(open_model(path))
    assert caught.value.file == str(path)
    assert "tensor 'w'" in caught.value.message
    assert caught.value.found is not None
    return caught.value


@pytest.fixture
def folder(tmp_path):
    """A folder for the model, with good data inside and a secret beside it."""
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    (inside / "sub" / "w.bin").write_bytes(WEIGHTS.tobytes())
    (inside / "w.bin").write_bytes(b"head" * 2 + WEIGHTS.tobytes() + b"tail")
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    return inside


def test_data_inside_the_folder(folder):
    np.testing.assert_array_equal(import_path(external_model(folder, "sub/w.bin")), WEIGHTS)
    np.testing.assert_array_equal(import_path(external_model(folder, "w.bin", offset=8, length=24)), WEIGHTS)
    np.testing.assert_array_equal(import_path(external_model(folder, "./w.bin", offset=8)), WEIGHTS)


@pytest.mark.parametrize("location", ["../secret.bin", "sub/../../secret.bin", "", ".", ".."])
def test_data_outside_the_folder(folder, location):
    refused(external_model(folder, location), "outside the model's folder")


def test_absolute_paths(folder, tmp_path):
    refused(external_model(folder, tmp_path / "secret.bin"), "outside the model's folder")
    refused(external_model(folder, folder / "w.bin"), "outside the model's folder")


def test_links(folder, tmp_path):
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    refused(external_model(folder, "link.bin"), "through a link")
    (folder / "up").symlink_to(tmp_path)
    refused(external_model(folder, "up/secret.bin"), "through a link")
    os.link(tmp_path / "secret.bin", folder / "hard.bin")
    refused(external_model(folder, "hard.bin"), "no plain file")


def test_a_model_reached_through_a_link_reads_beside_its_target(folder, tmp_path):
    path = external_model(folder, "sub/w.bin")
    (tmp_path / "shortcut.onnx").symlink_to(path)
    np.testing.assert_array_equal(import_path(tmp_path / "shortcut.onnx"), WEIGHTS)


def test_what_is_no_plain_file(folder):
    refused(external_model(folder, "sub"), "no plain file")
    os.mkfifo(folder / "pipe")
    refused(external_model(folder, "pipe"), "no plain file")
    refused(external_model(folder, "none.bin"), "cannot be read")
    refused(external_model(folder, "w.bin/below"), "cannot be read")
    refused(external_model(folder, "nul\0.bin"), "cannot be read")
    refused(external_model(folder, "long" * 1000), "cannot be read")


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 16},
        {"offset": 2**62},
        {"offset": -1},
        {"length": 20},
        {"length": 2**62},
        {"length": -24},
        {"offset": 1, "length": 36},
    ],
    ids=str,
)
def test_data_that_does_not_fit_its_file(folder, entries):
    error = refused(external_model(folder, "w.bin", **entries), "does not fit its external file")
    assert error.expected == "24 bytes within 36"


@pytest.mark.parametrize(
    "entries", [{"offset": "x"}, {"length": ""}, {"length": "9" * 5000}], ids=lambda e: str(e)[:20]
)
def test_numbers_that_are_none(folder, entries):
    refused(external_model(folder, "w.bin", **entries), "bad external offset or length")


def test_a_model_without_a_folder(folder):
    path = external_model(folder, "w.bin")
    for source in (path.read_bytes(), onnx.load(path, load_external_data=False)):
        with pytest.raises(ModelError, match="has no folder") as caught:
            import_model(open_model(source))
        assert "path" in str(caught.value.remedy)


def test_a_location_that_is_no_text(folder):
    path = external_model(folder, "location")
    bad = b"\xff\xfe\xfd\xfc" * 2
    path.write_bytes(path.read_bytes().replace(b"\x12\x08location", b"\x12\x08" + bad))
    refused(path, "by no text")
