"""Models whose shapes follow from data, in parts: results, what a second run makes, and memory.

References are ONNX Runtime and NumPy.
"""

from __future__ import annotations

import resource

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone
from glowstone.errors import ExecutionError, InputError, ModelError, ShapeError

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node
info = helper.make_tensor_value_info
random = np.random.default_rng(60)


def model_of(nodes, inputs, outputs, constants=None, opset=17):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "steps", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def runtime(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def check(model, compiled, feeds, tolerance=1e-5):
    """All outputs are those of ONNX Runtime; returns them."""
    found = list(compiled.run(feeds).values())
    for mine, theirs in zip(found, runtime(model)(feeds), strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
    return found


def made(compiled):
    """What was compiled and planned so far."""
    counters = compiled.report()["counters"]
    return {name: counters[name] for name in ("plans", "templates", "pipeline_runs", "kernels_compiled")}


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
    for shape in ((1, 3, 8, 8), (2, 3, 6, 10), (1, 3, 8, 8)):
        check(model, compiled, {"image": random.standard_normal(shape).astype(np.float32)}, 1e-4)
    nothing = compiled.run({"image": np.zeros((1, 3, 8, 8), np.float32)})
    assert nothing["selected"].shape == (0, 3)
    assert compiled.report()["host_steps"] == 0


def decoder(state=8, vocabulary=11):
    """A greedy decoder of one attention head written as a loop: keys and values grow by a row each pass."""
    body_nodes = [
        node("Gather", ["embedding", "token"], ["x"]),
        node("MatMul", ["x", "wq"], ["q"]),
        node("MatMul", ["x", "wk"], ["k"]),
        node("MatMul", ["x", "wv"], ["v"]),
        node("Concat", ["keys", "k"], ["keys_out"], axis=0),
        node("Concat", ["values", "v"], ["values_out"], axis=0),
        node("Transpose", ["keys_out"], ["kt"], perm=[1, 0]),
        node("MatMul", ["q", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["weights"], axis=-1),
        node("MatMul", ["weights", "values_out"], ["context"]),
        node("Add", ["context", "x"], ["mixed"]),
        node("MatMul", ["mixed", "head"], ["logits"]),
        node("ArgMax", ["logits"], ["token_out"], axis=-1, keepdims=0),
        node("Equal", ["token_out", "stop"], ["is_stop"]),
        node("Squeeze", ["is_stop"], ["stops"]),
        node("Not", ["stops"], ["goes_on"]),
        node("Identity", ["token_out"], ["emitted"]),
    ]
    past, present = ["past", state], ["present", state]
    body = helper.make_graph(
        body_nodes,
        "body",
        [
            info("i", INT64, []),
            info("go", BOOL, []),
            info("token", INT64, [1]),
            info("keys", FLOAT, past),
            info("values", FLOAT, past),
        ],
        [
            info("goes_on", BOOL, []),
            info("token_out", INT64, [1]),
            info("keys_out", FLOAT, present),
            info("values_out", FLOAT, present),
            info("emitted", INT64, [1]),
        ],
    )
    nodes = [
        node(
            "Loop", ["most", "", "first", "no_keys", "no_keys"], ["last", "keys_all", "values_all", "tokens"], body=body
        )
    ]
    constants = {
        "embedding": random.standard_normal((vocabulary, state)).astype(np.float32),
        "head": random.standard_normal((state, vocabulary)).astype(np.float32),
        "no_keys": np.zeros((0, state), np.float32),
        "stop": np.array([0]),
    }
    constants |= {name: random.standard_normal((state, state)).astype(np.float32) for name in ("wq", "wk", "wv")}
    outputs = [info("tokens", INT64, ["n", 1]), info("keys_all", FLOAT, ["m", state])]
    return model_of(nodes, [info("most", INT64, []), info("first", INT64, [1])], outputs, constants)


def test_a_greedy_decoder_with_a_growing_cache():
    model = decoder()
    compiled = glowstone.compile(model)
    for first in (3, 7):
        for most in (12, 1):
            check(model, compiled, {"most": np.array(most), "first": np.array([first])}, 1e-4)
    before = made(compiled)
    check(model, compiled, {"most": np.array(12), "first": np.array([3])}, 1e-4)
    assert made(compiled) == before
    assert compiled.report()["host_steps"] == 1


def test_nested_branches_in_a_loop_with_changing_shapes():
    """Each pass doubles what is carried, or appends a row, by what is in it."""
    longer = helper.make_graph([node("Concat", ["v", "v"], ["a"], axis=0)], "longer", [], [info("a", FLOAT, None)])
    inner_then = helper.make_graph([node("Neg", ["v"], ["b"])], "negated", [], [info("b", FLOAT, None)])
    inner_else = helper.make_graph([node("Concat", ["v", "row"], ["b"], axis=0)], "row", [], [info("b", FLOAT, None)])
    shorter = helper.make_graph(
        [
            node("ReduceMin", ["v"], ["low"], keepdims=0),
            node("Less", ["low", "none"], ["is_low"]),
            node("If", ["is_low"], ["c"], then_branch=inner_then, else_branch=inner_else),
        ],
        "shorter",
        [],
        [info("c", FLOAT, None)],
    )
    body = helper.make_graph(
        [
            node("Mod", ["i", "two"], ["rest"]),
            node("Equal", ["rest", "zero"], ["even"]),
            node("If", ["even"], ["w"], then_branch=longer, else_branch=shorter),
            node("Shape", ["w"], ["extents"]),
            node("ReduceMax", ["extents"], ["largest"], keepdims=0),
            node("Less", ["largest", "limit"], ["goes_on"]),
        ],
        "body",
        [info("i", INT64, []), info("go", BOOL, []), info("v", FLOAT, None)],
        [info("goes_on", BOOL, []), info("w", FLOAT, None)],
    )
    nodes = [node("Loop", ["most", "", "x"], ["y"], body=body)]
    constants = {"two": np.array(2), "zero": np.array(0), "limit": np.array(30), "none": np.array(0, np.float32)}
    constants["row"] = np.full((1, 3), 2, np.float32)
    model = model_of(
        nodes, [info("most", INT64, []), info("x", FLOAT, ["n", 3])], [info("y", FLOAT, ["m", 3])], constants
    )
    compiled = glowstone.compile(model)
    for most in (0, 1, 4, 9):
        for low in (-1, 1):
            x = (low + random.random((2, 3))).astype(np.float32)
            check(model, compiled, {"most": np.array(most), "x": x})


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
    with pytest.raises(InputError, match="bind"):
        compiled.bind({"x": x})


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
    assert onnx.__version__
