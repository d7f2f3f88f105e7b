"""Models that other engines did not read at all."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from helpers.reports import by_runtime, check, check_nodes, model_of, normal, one_node, refused
from onnx import helper, numpy_helper

import glowstone
from glowstone.errors import UnsupportedError

FLATTEN = """
main (float["batch", 3, "h", 8] x) => (float["batch", 5] scores, float["batch", "parts", 12] rows) {
  sums = Conv <pads = [1, 1, 1, 1]> (x, w)
  shape = Shape (sums)
  first = Constant <value = int64 {0}> ()
  count = Gather (shape, first)
  zero = Constant <value = int64[1] {0}> ()
  counts = Unsqueeze (count, zero)
  rest = Constant <value = int64[1] {-1}> ()
  target = Concat <axis = 0> (counts, rest)
  pooled = GlobalAveragePool (sums)
  flat = Reshape (pooled, target)
  scores = MatMul (flat, head)
  height = Constant <value = int64 {2}> ()
  rows_in = Gather (shape, height)
  as_float = Cast <to = 1> (rows_in)
  half = Constant <value = float {0.5}> ()
  scaled = Mul (as_float, half)
  floored = Floor (scaled)
  rows_out = Cast <to = 7> (floored)
  rows_list = Unsqueeze (rows_out, zero)
  columns = Constant <value = int64[1] {4}> ()
  shape_start = Slice (shape, zero, two)
  sizes = Concat <axis = 0> (shape_start, rows_list, columns)
  small = Resize <mode = "nearest"> (sums, , , sizes)
  twelve = Constant <value = int64[1] {12}> ()
  row_shape = Concat <axis = 0> (counts, rest, twelve)
  rows = Reshape (small, row_shape)
}
"""


def test_arithmetic_on_shapes():
    """glow#2907, ncnn#1942: what exporters write around Flatten and interpolation, simplified by nobody."""
    weights = {"w": normal(6, 3, 3, 3), "head": normal(6, 5), "two": np.array([2])}
    feeds = [{"x": normal(batch, 3, rows, 8)} for batch, rows in ((2, 6), (1, 10), (5, 7), (2, 6))]
    compiled = check(model_of(FLATTEN, weights=weights), *feeds, expected=by_runtime)
    operations = {entry["operation"] for entry in compiled.report()["instructions"]}
    assert not operations & {"Elementwise", "Fill"}, operations  # none of it is left for a run


def test_attributes_left_out():
    """glow#5935: a node has its default where the file has no attribute."""
    x, plane = normal(2, 3, 4), normal(1, 2, 5, 6)
    weights = normal(3, 2, 3, 2, seed=1)
    nodes = (
        one_node("Conv", plane, weights, fixed=[1]),
        one_node("Conv", plane, weights, fixed=[1], auto_pad="SAME_UPPER"),
        one_node("ConvTranspose", plane, normal(2, 3, 2, 2)),
        one_node("MaxPool", plane, kernel_shape=[2, 3]),
        one_node("AveragePool", plane, kernel_shape=[2, 2]),
        one_node("Transpose", x),
        one_node("Softmax", x),
        one_node("Squeeze", x[:1]),
        one_node("ReduceMean", x),
        one_node("ReduceSum", x),
        one_node("ArgMax", x),
        one_node("Flatten", x),
        one_node("Clip", x),
        one_node("LeakyRelu", x),
        one_node("Elu", x),
        one_node("HardSigmoid", x),
        one_node("Gemm", x[0], x[0].T),
        one_node("Gather", x, np.array([1, -1])),
        one_node("LRN", plane, size=3),
        one_node("BatchNormalization", plane, *np.abs(normal(4, 2)), fixed=[1, 2, 3, 4]),
        one_node("Pad", x, np.array([0, 1, 0, 1, 0, 2]), fixed=[1]),
        one_node("Resize", plane, None, np.float32([1, 1, 2, 2]), fixed=[2]),
        one_node("DepthToSpace", normal(1, 4, 2, 2), blocksize=2),
    )
    check_nodes(*nodes, expected=[by_runtime(*node) for node in nodes])


@pytest.mark.parametrize("name", ["", "344", "Conv_0/a:b.c", "\N{SNOWMAN} \\ \" '"])
def test_names_that_are_none_or_any_text(name):
    """glow#3932: nodes without a name, values called by numbers, and constants that are nodes."""
    value = numpy_helper.from_array(np.float32([2, 3]))
    nodes = [
        helper.make_node("Constant", [], [f"{name}345"], value=value),
        helper.make_node("Mul", ["0", f"{name}345"], [f"{name}346"], name=name),
        helper.make_node("Relu", [f"{name}346"], ["1"], name=name),
    ]
    ports = [helper.make_tensor_value_info(port, 1, ["n", 2]) for port in "01"]
    graph = helper.make_graph(nodes, name, ports[:1], ports[1:])
    check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"0": normal(3, 2)})


def test_parts_whose_sizes_arrive_with_the_call():
    """tvm#17866: Split by an input, also into parts of nothing."""
    text = """
    main (float[7, 2] x, int64[3] sizes) => (float["a", 2] first, float["b", 2] second, float["c", 2] third) {
      doubled = Add (x, x)
      first, second, third = Split <axis = 0> (doubled, sizes)
    }
    """
    feeds = [{"x": normal(7, 2), "sizes": np.array(sizes)} for sizes in ([1, 4, 2], [0, 7, 0], [3, 0, 4])]
    compiled = glowstone.compile(model_of(text))
    for arrays in feeds:
        wanted = by_runtime(model_of(text), arrays)
        for found, right in zip(compiled.run(arrays).values(), wanted, strict=True):
            np.testing.assert_array_equal(found, right)


def channels_last(convolutions):
    """A network of an NHWC framework: transposed before and after each convolution."""
    lines, before = [], "x"
    for number in range(convolutions):
        lines += [
            f"t{number} = Transpose <perm = [0, 3, 1, 2]> ({before})",
            f"c{number} = Conv <pads = [1, 1, 1, 1]> (t{number}, w)",
            f"b{number} = Transpose <perm = [0, 2, 3, 1]> (c{number})",
            f"a{number} = Add (b{number}, bias)",
            f"r{number} = Relu (a{number})",
        ]
        before = f"r{number}"
    body = "\n".join([*lines, f"y = Identity ({before})"])
    return model_of(
        f"main (float[1, 9, 7, 16] x) => (float[1, 9, 7, 16] y) {{ {body} }}",
        weights={"w": normal(16, 16, 3, 3) / 12, "bias": normal(16, seed=1)},
    )


def test_transposes_around_convolutions_cancel():
    """pystm32ai#1: two at the borders are left, however many convolutions there are."""
    few, many = (
        check(channels_last(count), {"x": normal(1, 9, 7, 16)}, expected=by_runtime).report()["instructions"]
        for count in (1, 4)
    )
    assert len(many) == len(few) + 3


@pytest.mark.parametrize("kind", ["Loop", "If", "Scan"])
def test_what_is_not_there_inside_a_body_is_named(kind):
    """libonnx#12: an error, not a crash, with the operator and its node."""
    text = {
        "Loop": "y = Loop <body = p (int64 i, bool c, float[2] s) => (bool d, float[2] r) "
        "{ d = Identity (c) r = Frobnicate (s) }> (n, go, x)",
        "If": "y = If (go) <then_branch = p () => (float[2] a) { a = Frobnicate (x) }, "
        "else_branch = q () => (float[2] b) { b = Neg (x) }>",
        "Scan": "y, z = Scan <num_scan_inputs = 1, body = p (float[2] s, float[2] r) => (float[2] t, float[2] u) "
        "{ t = Add (s, r) u = Frobnicate (t) }> (x, rows)",
    }[kind]
    model = model_of(f"main (int64 n, bool go, float[2] x, float[3, 2] rows) => (float[2] y) {{ {text} }}")
    error = refused(UnsupportedError, model, "Frobnicate")
    assert error.operator == "Frobnicate"


def test_tensors_without_elements():
    """onnxruntime#25922, openvino's list of refused cases: constants of no elements in every place."""
    empty = np.zeros((0, 3), np.float32)
    x = normal(4, 3)
    check_nodes(
        one_node("Transpose", empty, fixed=[0], perm=[1, 0]),
        one_node("Concat", x, empty, fixed=[1], axis=0),
        one_node("Concat", empty, empty, fixed=[0, 1], axis=1),
        one_node("MatMul", x[:, :0], empty, fixed=[1]),
        one_node("Gemm", empty, x.T, normal(4), fixed=[0]),
        one_node("Split", x, np.array([0, 4, 0]), fixed=[1], results=3, axis=0),
        one_node("Reshape", empty, np.array([0, 3, 5]), fixed=[1], allowzero=1),
        one_node("Reshape", empty, np.array([3, 0]), fixed=[0, 1], allowzero=1),
        one_node("Reshape", x, np.array([0, -1]), fixed=[1]),
        one_node("Expand", empty[:, :1], np.array([0, 5]), fixed=[1]),
        one_node("Tile", x, np.array([0, 2]), fixed=[1]),
        one_node("Slice", x, np.array([2]), np.array([2]), fixed=[1, 2]),
        one_node("ReduceSum", empty, np.array([0]), fixed=[1], keepdims=0),
        one_node("ReduceProd", empty, np.array([1]), fixed=[0, 1]),
        one_node("Where", empty > 0, empty, empty),
        one_node("Pad", empty, np.array([1, 0, 1, 0]), np.float32(7), fixed=[1, 2]),
        one_node("Relu", empty),
        one_node("Softmax", empty, axis=1),
        one_node("ScatterND", x, np.zeros((0, 1), np.int64), empty),
        one_node("Gather", x, np.zeros((2, 0), np.int64)),
    )


def test_values_of_old_files_that_are_inputs_and_constants():
    """glow#2907: files before version 4 name every constant among the inputs too."""
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)],
        "old",
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [2, 4]), ("w", [3, 4]), ("b", [3]))],
        [helper.make_tensor_value_info("y", 1, [2, 3])],
        [numpy_helper.from_array(normal(3, 4), "w"), numpy_helper.from_array(normal(3), "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=3)
    onnx.checker.check_model(model)
    x = normal(2, 4, seed=1)
    compiled = glowstone.compile(model)
    assert [port.name for port in compiled.inputs] == ["x"]
    np.testing.assert_allclose(compiled(x), by_runtime(model, {"x": x})[0], rtol=1e-5, atol=1e-5)
