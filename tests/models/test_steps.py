"""Models whose shapes follow from data, in parts: results, what a second run makes, and memory.

References are ONNX Runtime and NumPy.
"""

from __future__ import annotations

import json
import pickle
import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.machine_code import machine_code_alone
from helpers.processes import run_python
from helpers.stepped import BOOL, FLOAT, INT64, check, info, made, model_of, node, runtime
from onnx import helper

import glowstone
from glowstone.cli.main import main
from glowstone.errors import ExecutionError, InputError, LimitError, ModelError, ShapeError, UnsupportedError

random = np.random.default_rng(60)


def chain():
    """NonZero -> Gather -> Reshape, with a shape from the number of elements found."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("NonZero", ["r"], ["places"]),
        node("Gather", ["places", "first"], ["rows"], axis=0),
        node("Gather", ["x", "rows"], ["picked"], axis=0),
        node("Shape", ["picked"], ["shape"]),
        node("Slice", ["shape", "zero", "one"], ["count"]),
        node("Concat", ["count", "half"], ["target"], axis=0),
        node("Reshape", ["picked", "target"], ["halves"]),
        node("ReduceMean", ["halves"], ["mean"], axes=[2], keepdims=0),
        node("MatMul", ["picked", "w"], ["product"]),
    ]
    constants = {"first": np.array(0), "zero": np.array([0]), "one": np.array([1]), "half": np.array([2, 3])}
    constants["w"] = random.standard_normal((6, 4)).astype(np.float32)
    outputs = [info("mean", FLOAT, ["n", 2]), info("product", FLOAT, ["n", 4])]
    return model_of(nodes, [info("x", FLOAT, ["rows", 6])], outputs, constants)


def test_a_chain_of_shapes_from_data():
    model = chain()
    compiled = glowstone.compile(model)
    assert [output.shape for output in compiled.outputs] == [("n", 2), ("n", 4)]
    for rows in (5, 1, 9):
        check(model, compiled, {"x": random.standard_normal((rows, 6)).astype(np.float32)})
    assert check(model, compiled, {"x": -np.ones((3, 6), np.float32)})[0].shape == (0, 2)  # nothing is found
    assert compiled.report()["host_steps"] == 0


def test_a_second_run_makes_nothing():
    model = chain()
    compiled = glowstone.compile(model)
    feeds = [{"x": random.standard_normal((rows, 6)).astype(np.float32)} for rows in (4, 7, 2)]
    for feed in feeds:
        compiled.run(feed)
    before = made(compiled)
    for feed in feeds:
        compiled.run(feed)
    assert made(compiled) == before
    assert before["kernels_compiled"] >= 0
    compiled.run({"x": random.standard_normal((11, 6)).astype(np.float32)})
    after = made(compiled)
    assert after["plans"] > before["plans"]
    assert after["templates"] == before["templates"]  # another shape is planned, not compiled


def test_many_shapes_in_turn_leave_memory_flat():
    compiled = glowstone.compile(chain())

    def run_many(first, last):
        for rows in range(first, last):
            compiled.run({"x": random.standard_normal((rows, 6)).astype(np.float32)})

    run_many(1, 300)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run_many(300, 500)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 16, f"{grown} MiB"


def test_values_that_decide_shapes_are_planned_not_compiled():
    """Slices, pads, repeats and ranges from computed numbers."""
    nodes = [
        node("ReduceSum", ["n", "axes"], ["sum"], keepdims=1),
        node("Sub", ["sum", "one"], ["less"]),
        node("Slice", ["x", "zero", "less"], ["cut"]),
        node("Concat", ["one", "sum"], ["repeats"], axis=0),
        node("Tile", ["cut", "repeats"], ["tiled"]),
        node("TopK", ["tiled", "less"], ["top", "places"], axis=1),
        node("Squeeze", ["sum", "zero"], ["end"]),
        node("Range", ["start", "end", "step"], ["numbers"]),
    ]
    constants = {"axes": np.array([0]), "one": np.array([1]), "zero": np.array([0])}
    constants |= {"start": np.array(0), "step": np.array(1)}
    outputs = [info("top", FLOAT, ["a", "b"]), info("places", INT64, ["a", "b"]), info("numbers", INT64, ["c"])]
    model = model_of(nodes, [info("x", FLOAT, [8, 3]), info("n", INT64, ["k"])], outputs, constants)
    compiled = glowstone.compile(model)
    x = random.permutation(24).reshape(8, 3).astype(np.float32)
    check(model, compiled, {"x": x, "n": np.array([1, 2])})
    before = made(compiled)
    for numbers in ([2, 2], [5, 3], [6], [1, 1, 1]):
        check(model, compiled, {"x": x, "n": np.array(numbers)})
    after = made(compiled)
    assert after["templates"] == before["templates"]
    assert after["plans"] > before["plans"]


def test_inputs_that_decide_shapes():
    nodes = [node("Reshape", ["x", "shape"], ["r"]), node("Expand", ["r", "larger"], ["y"])]
    inputs = [info("x", FLOAT, ["n"]), info("shape", INT64, [2]), info("larger", INT64, [3])]
    model = model_of(nodes, inputs, [info("y", FLOAT, ["a", "b", "c"])])
    compiled = glowstone.compile(model)
    x = np.arange(6, dtype=np.float32)
    for shape, larger in (([2, 3], [4, 1, 1]), ([3, 2], [1, 3, 2]), ([1, 6], [2, 5, 6]), ([-1, 1], [1, 6, 6])):
        check(model, compiled, {"x": x, "shape": np.array(shape), "larger": np.array(larger)})
    with pytest.raises(ShapeError, match="number of elements"):
        compiled.run({"x": x, "shape": np.array([4, 2]), "larger": np.array([1, 1, 1])})
    call = compiled.bind({"x": x, "shape": np.array([2, 3]), "larger": np.array([1, 1, 1])})
    np.testing.assert_array_equal(call()["y"], x.reshape(1, 2, 3))


def detector():
    """Scores and boxes of a small convolutional head; the best boxes of each class, gathered."""
    nodes = [
        node("Conv", ["image", "w"], ["features"], pads=[1, 1, 1, 1]),
        node("Relu", ["features"], ["active"]),
        node("Reshape", ["active", "flat"], ["columns"]),
        node("Split", ["columns", "parts"], ["boxes_by_column", "logits"], axis=1),
        node("Transpose", ["boxes_by_column"], ["boxes"], perm=[0, 2, 1]),
        node("Sigmoid", ["logits"], ["scores"]),
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "threshold"], ["selected"]),
        node("Gather", ["selected", "two"], ["numbers"], axis=1),
        node("Squeeze", ["numbers", "axis"], ["box_numbers"]),
        node("Gather", ["selected", "zero"], ["images"], axis=1),
        node("Concat", ["images", "numbers"], ["places"], axis=1),
        node("GatherND", ["boxes", "places"], ["kept"]),
        node("ReduceSum", ["kept", "axis"], ["sums"], keepdims=0),
    ]
    constants = {
        "w": random.standard_normal((7, 3, 3, 3)).astype(np.float32),
        "flat": np.array([0, 7, -1]),
        "parts": np.array([4, 3]),
        "most": np.array([5]),
        "overlap": np.array([0.4], np.float32),
        "threshold": np.array([0.6], np.float32),
        "two": np.array([2]),
        "zero": np.array([0]),
        "axis": np.array([1]),
    }
    outputs = [info("selected", INT64, ["n", 3]), info("kept", FLOAT, ["n", 4]), info("sums", FLOAT, ["n"])]
    outputs.append(info("box_numbers", INT64, ["n"]))
    return model_of(nodes, [info("image", FLOAT, ["batch", 3, "h", "w"])], outputs, constants)


def test_a_detection_head():
    model = detector()
    compiled = glowstone.compile(model)
    feeds = [
        {"image": random.standard_normal(shape).astype(np.float32)}
        for shape in ((1, 3, 8, 8), (2, 3, 6, 10), (1, 3, 8, 8))
    ]
    for feed in feeds:
        check(model, compiled, feed, 1e-4)
    with machine_code_alone():
        for feed in feeds:
            check(model, compiled, feed, 1e-4)
    nothing = compiled.run({"image": np.zeros((1, 3, 8, 8), np.float32)})
    assert nothing["selected"].shape == (0, 3)
    assert compiled.report()["host_steps"] == 0


@pytest.mark.parametrize("element", [np.float32, np.int64, np.bool_, np.float16, np.uint8])
def test_distinct_and_kept_elements(element):
    nodes = [
        node("Unique", ["x"], ["y", "first", "inverse", "counts"], axis=0),
        node("Compress", ["x", "condition"], ["kept"], axis=0),
        node("Shape", ["kept"], ["shape"]),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    outputs = [info("y", kind, None), *(info(name, INT64, None) for name in ("first", "inverse", "counts"))]
    outputs += [info("kept", kind, None), info("shape", INT64, None)]
    model = model_of(nodes, [info("x", kind, ["n", 2]), info("condition", BOOL, ["n"])], outputs)
    compiled = glowstone.compile(model)
    for rows in (6, 0, 1, 23):
        x, condition = random.integers(0, 2, (rows, 2)).astype(element), random.random(rows) < 0.5
        found = compiled.run({"x": x, "condition": condition})
        expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=0) if rows else None
        if expected is not None:
            for name, wanted in zip(("y", "first", "inverse", "counts"), expected, strict=True):
                np.testing.assert_array_equal(found[name], wanted.reshape(found[name].shape))
        np.testing.assert_array_equal(found["kept"], x[condition])
        assert found["shape"].tolist() == [condition.sum(), 2]


def test_constants_are_found_when_the_model_is_compiled():
    """What NonZero finds in a constant is a constant: the model stays one program."""
    nodes = [node("NonZero", ["mask"], ["places"]), node("GatherND", ["x", "rows"], ["y"])]
    nodes.insert(1, node("Transpose", ["places"], ["rows"], perm=[1, 0]))
    mask = np.array([[1, 0, 1], [0, 1, 0]])
    model = model_of(nodes, [info("x", FLOAT, [2, 3])], [info("y", FLOAT, None)], {"mask": mask})
    compiled = glowstone.compile(model)
    x = random.standard_normal((2, 3)).astype(np.float32)
    check(model, compiled, {"x": x})
    assert "parts" not in compiled.report()


def test_indices_from_data_are_checked():
    nodes = [node("NonZero", ["x"], ["places"]), node("Gather", ["table", "places"], ["y"], axis=0)]
    table = np.arange(3, dtype=np.float32)
    model = model_of(nodes, [info("x", FLOAT, ["n"])], [info("y", FLOAT, None)], {"table": table})
    compiled = glowstone.compile(model)
    assert compiled.run({"x": np.array([0, 1, 1], np.float32)})["y"].tolist() == [[1, 2]]
    with pytest.raises(ExecutionError, match="index is out of range"):
        compiled.run({"x": np.ones(5, np.float32)})


def test_wrong_inputs_are_refused():
    compiled = glowstone.compile(chain())
    x = np.ones((2, 6), np.float32)
    for inputs, message in (({}, "missing"), ({"x": x, "z": x}, "no input of this name"), ({"x": [1.0]}, "no array")):
        with pytest.raises(InputError, match=message):
            compiled.run(inputs)
    with pytest.raises(ShapeError, match="another shape"):
        compiled.run({"x": x[:, :5]})
    with pytest.raises(InputError, match="no output"):
        compiled.run({"x": x}, ["nothing"])
    with pytest.raises(UnsupportedError, match="several parts"):
        compiled.bind({"x": x})
    with pytest.raises(InputError, match="runs in steps"):
        compiled.write_bundle(".", "model")


def test_errors_in_later_parts_name_the_node():
    nodes = [
        node("NonZero", ["x"], ["places"], name="find"),
        node("Reshape", ["places", "three"], ["y"], name="shape it"),
    ]
    model = model_of(nodes, [info("x", FLOAT, ["n"])], [info("y", INT64, None)], {"three": np.array([3, 5])})
    compiled = glowstone.compile(model)
    with pytest.raises(ShapeError) as caught:
        compiled.run({"x": np.ones(4, np.float32)})
    assert caught.value.node == "shape it"
    assert compiled.run({"x": np.ones(15, np.float32)})["y"].shape == (3, 5)


def test_results_do_not_depend_on_threads():
    model = detector()
    image = random.standard_normal((2, 3, 9, 9)).astype(np.float32)
    runs = [glowstone.compile(model, threads=threads).run({"image": image}) for threads in (1, 2)]
    for name, array in runs[0].items():
        assert array.tobytes() == runs[1][name].tobytes()


def test_a_session_runs_it():
    model = chain()
    x = random.standard_normal((4, 6)).astype(np.float32)
    session = glowstone.InferenceSession(model.SerializeToString())
    found = session.run(["product"], {"x": x})
    np.testing.assert_allclose(found[0], runtime(model)({"x": x})[1], rtol=1e-4, atol=1e-5)


def test_a_model_that_is_not_valid_is_refused_at_once():
    nodes = [node("NonZero", ["x"], ["y"]), node("Reshape", ["y", "missing"], ["z"])]
    model = model_of(nodes, [info("x", FLOAT, ["n"])], [info("z", INT64, None)])
    with pytest.raises(ModelError, match="computed by no node"):
        glowstone.compile(model)


def test_results_of_the_largest_size_stay_within_the_limit():
    model = model_of([node("NonZero", ["x"], ["y"])], [info("x", FLOAT, ["n"])], [info("y", INT64, None)])
    compiled = glowstone.compile(model, memory_limit=1 << 20)
    assert compiled.run({"x": np.ones(1000, np.float32)})["y"].shape == (1, 1000)
    with pytest.raises(LimitError, match="memory"):
        compiled.run({"x": np.zeros(1 << 20, np.float32)})


def test_fixed_inputs():
    nodes = [node("Reshape", ["x", "shape"], ["r"]), node("NonZero", ["r"], ["y"])]
    model = model_of(nodes, [info("x", FLOAT, ["n"]), info("shape", INT64, [2])], [info("y", INT64, [2, "m"])])
    compiled = glowstone.compile(model, shapes={"x": [4]}, constants={"shape": np.array([2, -1])})
    assert [port.name for port in compiled.inputs] == ["x"]
    x = np.array([0, 1, 2, 0], np.float32)
    np.testing.assert_array_equal(compiled(x), np.argwhere(x.reshape(2, 2)).T)


def test_the_receiver_of_a_pickle_runs_it():
    compiled = pickle.loads(pickle.dumps(glowstone.compile(chain())))
    assert compiled.run({"x": -np.ones((2, 6), np.float32)})["mean"].shape == (0, 2)


def test_threads_of_the_caller():
    """Many at once, the first time and later."""
    model = chain()
    compiled = glowstone.compile(model)
    feeds = [{"x": random.standard_normal((rows, 6)).astype(np.float32)} for rows in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(compiled.run, feeds * 3))
    for feed, results in zip(feeds * 3, found, strict=True):
        for mine, theirs in zip(results.values(), runtime(model)(feed), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_the_command_line_runs_and_times_it(tmp_path, capsys):
    path, output = tmp_path / "chain.onnx", tmp_path / "found.npz"
    model = chain()
    path.write_bytes(model.SerializeToString())
    x = random.standard_normal((3, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    assert main(["run", str(path), "-i", f"x={tmp_path / 'x.npy'}", "-o", str(output)]) == 0
    np.testing.assert_allclose(np.load(output)["product"], runtime(model)({"x": x})[1], rtol=1e-4, atol=1e-5)
    capsys.readouterr()
    assert main(["bench", str(path), "--shape", "x=3,6", "-n", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 2
    assert main(["inspect", str(path), "--compiled", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["compiled"]["host_steps"] == 0


_SECOND = """
import json, sys
import numpy as np
import glowstone
compiled = glowstone.compile(sys.argv[1])
for extent in (8, 11):
    found = compiled.run({"image": np.random.default_rng(extent).standard_normal((1, 3, extent, 9), dtype=np.float32)})
counters = compiled.report()["counters"]
print(json.dumps([counters["kernels_compiled"], {name: array.tolist() for name, array in found.items()}]))
"""


def test_a_second_process_compiles_no_kernel(tmp_path):
    path = tmp_path / "detector.onnx"
    path.write_bytes(detector().SerializeToString())
    environment = {"GLOWSTONE_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (json.loads(run_python(_SECOND, str(path), environment=environment)) for _ in range(2))
    assert first[0] > 0
    assert second == [0, first[1]]
