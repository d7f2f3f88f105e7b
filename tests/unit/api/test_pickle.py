"""Models pickle: source and options travel, the receiver compiles or takes executables from its cache."""

from __future__ import annotations

import pickle

import numpy as np
import onnx
import pytest
from helpers.models import save_matrix_product, save_small_convolution
from helpers.processes import run_python
from onnx import TensorProto, helper

import glowstone
from glowstone import examples
from glowstone.errors import ModelError

RECEIVER = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as stream:
    model, arrays, expected = pickle.load(stream)
found = model.run(arrays)
assert found.keys() == expected.keys()
for name, array in expected.items():
    np.testing.assert_array_equal(found[name], array)
print(model.threads, model.report()["counters"]["pipeline_runs"])
"""


@pytest.mark.parametrize("with_cache", [True, False])
def test_another_process_gets_the_same_results(tmp_path, with_cache):
    images = {examples.DIGITS_INPUT: examples.digit_images()[0][:3]}
    options = {"cache_dir": str(tmp_path / "cache")}
    model = glowstone.compile(
        examples.DIGITS, shapes={"image": (3, 1, 8, 8)}, threads=1, cache=with_cache, options=options
    )
    file = tmp_path / "model.pickle"
    file.write_bytes(pickle.dumps((model, images, model.run(images))))
    assert run_python(RECEIVER, str(file)).split() == ["1", "0" if with_cache else "1"]


def test_the_model_file_need_not_be_there_any_more(tmp_path):
    path = save_small_convolution(tmp_path / "model.onnx")
    data = pickle.dumps(glowstone.compile(path))
    path.unlink()
    x = np.ones((1, 3, 48, 16), np.float32)
    assert pickle.loads(data).run({"x": x})["y"].shape == (1, 8, 48, 16)


def test_external_data_travel_along(tmp_path):
    path = save_matrix_product(tmp_path / "plain.onnx", 2, 64, 16)
    model = onnx.load(path)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    x = np.ones((2, 64), np.float32)
    compiled = glowstone.compile(tmp_path / "model.onnx")
    data = pickle.dumps(compiled)
    (tmp_path / "weights.bin").unlink()
    np.testing.assert_array_equal(pickle.loads(data).run({"x": x})["y"], compiled.run({"x": x})["y"])


def test_a_file_that_was_changed_is_refused(tmp_path):
    path = save_matrix_product(tmp_path / "model.onnx", 2, 8, 8)
    model = glowstone.compile(path, options={"cache_dir": str(tmp_path / "cache")})
    save_matrix_product(path, 2, 8, 16)
    with pytest.raises(ModelError, match="was changed"):
        pickle.dumps(model)


def test_models_whose_inputs_decide_shapes_pickle_too():
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    ports = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [6]),
        helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"]),
    ]
    proto = helper.make_model(
        helper.make_graph([node], "reshape", ports[:2], ports[2:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model = pickle.loads(pickle.dumps(glowstone.compile(proto, cache=False)))
    x = np.arange(6, dtype=np.float32)
    assert model.run({"x": x, "shape": np.array([2, 3])})["y"].shape == (2, 3)
