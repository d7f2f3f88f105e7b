"""Files above 2 GB: weights are mapped, so what a model does not use costs nothing. The files here are sparse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.processes import run_python
from onnx import TensorProto, helper

import glowstone
from glowstone.errors import ModelError

LARGE = 2_300_000_000
ROWS, WIDTH = 2_200_000, 256
"""A table of 2.25 GB."""
MOST_GROWTH = 400 << 20
"""Bytes of memory that a process may take besides what it has after importing everything."""


def stored(name: str, shape: list[int], offset: int) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "w.bin", "offset": offset, "length": 4 * int(np.prod(shape))}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.fixture
def folder(tmp_path):
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(LARGE)
        file.seek(LARGE - 24)
        file.write(np.arange(6, dtype=np.float32).tobytes())
        file.seek(4 * WIDTH * (ROWS - 1))
        file.write(np.full(WIDTH, 7, np.float32).tobytes())
    return tmp_path


def write(folder: Path, nodes: list, inputs: list, shape: list, tensors: list[TensorProto]) -> Path:
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, tensors),
                              opset_imports=[helper.make_opsetid("", 17)])  # fmt: skip
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


MEASURED = """
import json, resource, sys
import numpy as np
import glowstone
from glowstone.api import compiling
import onnx
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = glowstone.compile(sys.argv[1])
found = model(np.array(json.loads(sys.argv[2]), sys.argv[3]))
again = glowstone.compile(sys.argv[1])(np.array(json.loads(sys.argv[2]), sys.argv[3]))
anonymous = [line for line in open("/proc/self/status") if line.startswith("RssAnon")]
print(json.dumps([found.tolist(), again.tolist(), 1024 * int(anonymous[0].split()[1]), 1024 * before]))
"""


def measured(path: Path, value: list, dtype: str) -> tuple[list, int]:
    """The result, and the bytes of memory that are not a mapped file's, beyond what importing takes."""
    found, again, after, before = json.loads(
        run_python(
            MEASURED, str(path), json.dumps(value), dtype, environment={"GLOWSTONE_CACHE_DIR": str(path.parent / "c")}
        )
    )
    assert found == again
    return found, after - before


def test_a_small_tensor_behind_two_gigabytes(folder):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    path = write(folder, [helper.make_node("Add", ["x", "w"], ["y"])], [x], [2, 3], [stored("w", [2, 3], LARGE - 24)])
    found, growth = measured(path, [[1, 1, 1], [0, 0, 0]], "float32")
    assert found == [[1, 2, 3], [3, 4, 5]]
    assert growth < MOST_GROWTH


def test_a_model_file_that_is_too_large(tmp_path):
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.truncate(LARGE)
    with pytest.raises(ModelError, match="save_as_external_data"):
        glowstone.compile(path)
