"""What docs/security.md promises: the table of the options; nothing read outside, nothing written but the cache."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers.processes import run_python
from onnx import TensorProto, helper

from glowstone.options import option_table

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
NO_LIMITS = frozenset(
    {
        "dump",
        "check",
        "skip_passes",
        "time_passes",
        "cache_dir",
        "cache_limit_bytes",
        "compile_processes",
        "external_data_roots",
    }
)
"""Options that bound nothing that a model can ask for."""

WATCHED = """
import json, os, sys
written, read = [], []
def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if isinstance(path, int):
            return
        is_write = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        (written if is_write else read).append(os.fsdecode(path))
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"):
        written.extend(os.fsdecode(part) for part in arguments if isinstance(part, str | bytes))
import numpy as np
import glowstone
from glowstone.api import compiling
import onnx, llvmlite.binding
sys.addaudithook(watch)
error = None
try:
    model = glowstone.compile(sys.argv[1], cache=sys.argv[2] == "cache")
    model(np.ones((2, 3), np.float32))
except glowstone.GlowstoneError as found:
    error = str(found)
print(json.dumps([written, read, error]))
"""


def test_the_table_of_limits_is_that_of_the_options():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE)
    expected = {
        (name, variable, "half of the machine's" if default is None else str(default), text)
        for name, variable, default, text in option_table()
        if name not in NO_LIMITS
    }
    assert set(rows) == expected
    assert "for compiling is 600 seconds and 2 GiB" in " ".join(PAGE.read_text().split())


def test_the_page_is_linked():
    root = PAGE.parents[1]
    assert "docs/security.md" in (root / "README.md").read_text()


@pytest.fixture
def folder(tmp_path):
    """A model with external data in a folder, beside a secret."""
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "w.bin").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    (tmp_path / "secret.bin").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    return inside


def written_model(folder: Path, location: str) -> Path:
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value=location)
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"]),
        helper.make_node("Add", ["b", "w"], ["y"]),
    ]
    v = onnx.numpy_helper.from_array(np.ones((3, 3), np.float32), "v")
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [w, v])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return path


def watched(path: Path, *, cache: bool) -> tuple[list[str], list[str], str | None]:
    """Paths that compiling and running write and read, and the error."""
    place = path.parent.parent / "cache"
    output = run_python(
        WATCHED, str(path), "cache" if cache else "none", environment={"GLOWSTONE_CACHE_DIR": str(place)}
    )
    return tuple(json.loads(output))


@pytest.mark.parametrize("cache", [True, False], ids=["cache", "no cache"])
def test_nothing_is_written_outside_the_cache(folder, cache):
    written, read, error = watched(written_model(folder, "w.bin"), cache=cache)
    assert error is None
    assert any(path.endswith("w.bin") for path in read)
    allowed = (str(folder.parent / "cache"), *(() if cache else ("/dev/null",)), "/dev/null")
    assert [path for path in written if not path.startswith(allowed)] == []
    if not cache:
        assert [path for path in written if path != "/dev/null"] == []


@pytest.mark.parametrize("location", ["../secret.bin", "link.bin", "{outside}/secret.bin", "w.bin/../../secret.bin"])
def test_nothing_is_read_outside_the_folder(folder, location):
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    written, read, error = watched(written_model(folder, location.format(outside=folder.parent)), cache=True)
    assert "external_data_roots" in error
    assert not [path for path in [*read, *written] if "secret" in path]
