"""External data: the model's own folder and the folders allowed, and nothing else; results never stale."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import glowstone
from glowstone.errors import ModelError
from glowstone.support import external_data

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)
ZEROS = np.zeros((2, 3), np.float32)


def external_model(folder: Path, location: object, offset: int = 0, as_attribute: bool = False) -> Path:
    """y = x + w in the folder, with w [2, 3] at this place: an initializer, or the attribute of a Constant node."""
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "offset": offset, "length": WEIGHTS.nbytes}.items():
        w.external_data.add(key=key, value=str(value))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    if as_attribute:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=w))
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [] if as_attribute else [w])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return path


def result(path: Path, **arguments: object) -> np.ndarray:
    return glowstone.compile(path, **arguments)(ZEROS)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A folder for the model and one for its weights, which lie beside each other; an own cache."""
    monkeypatch.setenv("GLOWSTONE_CACHE_DIR", str(tmp_path / "cache"))
    model, store = tmp_path / "model", tmp_path / "store"
    model.mkdir()
    store.mkdir()
    (store / "w.bin").write_bytes(WEIGHTS.tobytes())
    return model, store


@pytest.mark.parametrize("form", ["bare", "upwards", "absolute", "link"])
@pytest.mark.parametrize("as_attribute", [False, True], ids=["initializer", "attribute"])
def test_a_further_folder(folders, form, as_attribute):
    folder, store = folders
    (folder / "link.bin").symlink_to(store / "w.bin")
    location = {"bare": "w.bin", "upwards": "../store/w.bin", "absolute": store / "w.bin", "link": "link.bin"}[form]
    path = external_model(folder, location, as_attribute=as_attribute)
    with pytest.raises(ModelError, match="external_data_roots"):
        result(path)
    np.testing.assert_array_equal(result(path, external_data_roots=[store]), WEIGHTS)
    np.testing.assert_array_equal(result(path, external_data_roots=[str(store)]), WEIGHTS)
    with pytest.raises(ModelError, match="external_data_roots"):  # what the cache holds is no way around
        result(path)
    with pytest.raises(ModelError, match="external_data_roots"):
        result(path, external_data_roots=[store / "none", folder])


def test_the_option_and_the_environment(folders, monkeypatch):
    folder, store = folders
    path = external_model(folder, "w.bin")
    np.testing.assert_array_equal(result(path, options={"external_data_roots": [store]}, cache=False), WEIGHTS)
    monkeypatch.setenv("GLOWSTONE_EXTERNAL_DATA_ROOTS", os.pathsep.join(["/nowhere", str(store)]))
    np.testing.assert_array_equal(result(path, cache=False), WEIGHTS)


def test_a_folder_allows_no_way_out_of_it(folders, tmp_path):
    folder, store = folders
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    (store / "out.bin").symlink_to(tmp_path / "secret.bin")
    (store / "up").symlink_to(tmp_path)
    for location in ("out.bin", "up/secret.bin", "../secret.bin", "../store/../secret.bin", tmp_path / "secret.bin"):
        with pytest.raises(ModelError, match="external_data_roots"):
            result(external_model(folder, location), external_data_roots=[store])


def test_hard_links_are_read_where_the_user_says_so(folders):
    folder, store = folders
    os.link(store / "w.bin", folder / "hard.bin")
    path = external_model(folder, "hard.bin")
    with pytest.raises(ModelError, match="external_data_roots"):
        result(path)
    np.testing.assert_array_equal(result(path, external_data_roots=[folder]), WEIGHTS)


def test_a_store_of_linked_files(folders, tmp_path):
    """As model hubs keep them: names that are links, files under other names in one folder."""
    store, snapshot = folders
    external_model(store, "w.bin").rename(store / "0a1b")
    (snapshot / "w.bin").rename(store / "2c3d")
    (snapshot / "model.onnx").symlink_to(store / "0a1b")
    (snapshot / "w.bin").symlink_to(store / "2c3d")
    with pytest.raises(ModelError, match="external_data_roots"):
        result(snapshot / "model.onnx")
    np.testing.assert_array_equal(result(snapshot / "model.onnx", external_data_roots=[snapshot]), WEIGHTS)


def test_changed_data_give_changed_results(folders):
    folder, _ = folders
    path = external_model(folder, "own.bin", offset=4096)
    for number in range(3):
        (folder / "own.bin").write_bytes(b"\0" * 4096 + (WEIGHTS + number).tobytes())
        os.utime(folder / "own.bin", (1, 1))  # the clock tells nothing
        for _ in range(2):
            np.testing.assert_array_equal(result(path), WEIGHTS + number)
    model = glowstone.compile(path)
    (folder / "own.bin").unlink()
    np.testing.assert_array_equal(model(ZEROS), WEIGHTS + 2)
    with pytest.raises(ModelError, match="cannot be read"):
        result(path)


def test_without_folder_descriptors(folders, monkeypatch, tmp_path):
    """The way of systems that open nothing relative to a folder keeps the same rules."""
    monkeypatch.setattr(external_data, "_HAS_FOLDER_DESCRIPTORS", False)
    folder, store = folders
    (folder / "sub").mkdir()
    (folder / "sub" / "own.bin").write_bytes(WEIGHTS.tobytes())
    (folder / "link.bin").symlink_to(store / "w.bin")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    np.testing.assert_array_equal(result(external_model(folder, "sub/own.bin")), WEIGHTS)
    for location in ("link.bin", "up/store/w.bin", "pipe", "sub", "../store/w.bin"):
        with pytest.raises(ModelError, match="external_data_roots"):
            result(external_model(folder, location))
