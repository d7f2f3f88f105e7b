"""What a model file may not make the compiler read or write; tests/importer/test_external_data.py has more of it."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from helpers.reports import model_of, normal
from onnx import TensorProto

import glowstone
from glowstone.errors import GlowstoneError, InputError, ModelError

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)
OUTSIDE = "../secret.bin"


def external_model(folder, entries, as_constant=False):
    """y = x + w with w [2, 3] in another file, as an initializer or as the value of a Constant node."""
    model = model_of("main (float[2, 3] x) => (float[2, 3] y) { y = Add (x, w) }")
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in entries:
        w.external_data.add(key=key, value=value)
    if as_constant:
        constant = onnx.helper.make_node("Constant", [], ["w"])
        constant.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=w)
        model.graph.node.insert(0, constant)
    else:
        model.graph.initializer.append(w)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    return inside


@pytest.mark.parametrize("as_constant", [False, True], ids=["initializer", "constant"])
@pytest.mark.parametrize(
    "location",
    [
        OUTSIDE,
        "a/b/../../../secret.bin",
        "./.././secret.bin",
        "..//secret.bin",
        "w.bin/../../secret.bin",
        "/etc/passwd",
        "//etc/passwd",
        "....//secret.bin",
        "..\\secret.bin",
        "file:///etc/passwd",
        "%2e%2e/secret.bin",
        "~/secret.bin",
        "w.bin\n",
    ],
)
def test_no_spelling_of_a_path_leads_outside(folder, location, as_constant):
    """CVE-2022-25882, CVE-2024-27318, tinygrad: each is refused, or means a file in the folder that is not there."""
    path = external_model(folder, [("location", location)], as_constant)
    with pytest.raises(ModelError) as caught:
        glowstone.compile(path, cache=False)
    assert caught.value.file == str(path)


def test_links_in_every_place(folder, tmp_path):
    """CVE-2026-27489: a symbolic link as the file or as a folder on the way, and a hard link."""
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "sub").mkdir()
    (folder / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "inner").symlink_to(folder / "sub", target_is_directory=True)
    (folder / "sub" / "w.bin").write_bytes(WEIGHTS.tobytes())
    os.link(tmp_path / "secret.bin", folder / "hard.bin")
    for location in ("link.bin", "sub/up/secret.bin", "inner/w.bin", "hard.bin"):
        with pytest.raises(ModelError):
            glowstone.compile(external_model(folder, [("location", location)]), cache=False)


HOSTILE_KEYS = ("__class__", "__dict__", "__setattr__", "basepath", "checksum", "info", "")


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_keys_that_nobody_knows_set_nothing(folder, key):
    """CVE-2026-34445: an entry's key was set as an attribute of an object, whatever it was called."""
    path = external_model(folder, [("location", "w.bin"), (key, str(folder.parent))])
    found = glowstone.compile(path, cache=False)(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(found, WEIGHTS)


@pytest.mark.parametrize(
    ("offset", "length"),
    [("0", str(2**50)), ("0", "-1"), ("-8", "24"), (str(2**63), "24"), ("16", "24"), ("1e3", "24"), ("0", "0x18")],
)
def test_places_beyond_the_file(folder, offset, length):
    """CVE-2026-34445: petabytes are not allocated, and a negative length does not mean the whole file."""
    path = external_model(folder, [("location", "w.bin"), ("offset", offset), ("length", length)])
    with pytest.raises(ModelError):
        glowstone.compile(path, cache=False)


def test_what_is_written_stays_in_its_folder(tmp_path):
    """CVE-2025-51480, CVE-2024-5187: names in a model lead no file of ours anywhere else."""
    evil = "../../../evil"
    model = model_of("main (float[2, 3] x) => (float[2, 3] y) { y = Tanh (x) }")
    model.graph.name = model.graph.node[0].name = model.producer_name = evil
    model.graph.input[0].name = model.graph.node[0].input[0] = f"{evil}/x"
    model.graph.output[0].name = model.graph.node[0].output[0] = f"/{evil}/y"
    folders = {name: tmp_path / "a" / "b" / "c" / name for name in ("dump", "cache", "bundle")}
    options = {"dump": str(folders["dump"]), "cache_dir": str(folders["cache"])}
    compiled = glowstone.compile(model, options=options)
    compiled(normal(2, 3))
    folders["bundle"].mkdir()
    for name in (evil, "/tmp/evil", "a/b", "a.b", ""):
        with pytest.raises(InputError):
            compiled.write_bundle(folders["bundle"], name)
    compiled.write_bundle(folders["bundle"], "good")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert all(any(folder in path.parents for folder in folders.values()) for path in written)
    assert not any("evil" in path.name for path in written)


def test_messages_hold_any_text():
    """CVE-2024-27319: texts of a model are shown as data, whatever they look like."""
    text = "%s%n%x{0}{error}{{}}\\0" * 50
    model = model_of("main (float[2, 3] x) => (float[2, 3] y) { y = MatMul (x, x) }")
    model.graph.node[0].name = text
    with pytest.raises(GlowstoneError) as caught:
        glowstone.compile(model)
    assert text in str(caught.value)
    unknown = model_of("main (float[2] x) => (float[2] y) { y = Relu (x) }")
    unknown.graph.node[0].op_type = text
    with pytest.raises(GlowstoneError, match="%s%n"):
        glowstone.compile(unknown)
