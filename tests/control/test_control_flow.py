"""If, Loop and Scan in ONNX models: machine code, the interpreter and the reference, against ONNX Runtime.

Models are written as text; conditions and counts are inputs, so that nothing is decided before a run.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from helpers.agreement import assert_agrees
from helpers.graph_execution import compile_graph, interpret_graph
from helpers.graph_text import graph_of
from helpers.machine_code import machine_code_alone
from helpers.peer import Peer
from onnx import helper, parser

import glowstone
from glowstone.errors import GlowstoneError, ModelError
from glowstone.exporter import export_graph
from glowstone.graph import Graph, evaluate_graph, named_tensors, parse_graph, print_graph, rebuild, verify_graph
from glowstone.importer import import_model, open_model
from glowstone.ops import If, Loop
from glowstone.runtime.arena import aligned_bytes

Feeds = Mapping[str, np.ndarray]


def model_of(text: str, opset: int = 21) -> onnx.ModelProto:
    """A model whose only graph is given as text."""
    graph = parser.parse_graph(text)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def imported(model: onnx.ModelProto, feeds: Feeds) -> Graph:
    graph = import_model(open_model(model), {name: array.shape for name, array in feeds.items()})
    verify_graph(graph)
    return graph


def operators(graph: Graph) -> list[str]:
    """Names of all operators, those of bodies too."""
    return [node.operator.name for part in graph.nested() for node in part.nodes]


def check(model: onnx.ModelProto, feeds: Feeds, *others: Feeds) -> glowstone.Model:
    """All ways to run the model give what ONNX Runtime gives, for each of the inputs."""
    peer = Peer(model.SerializeToString())
    graph = imported(model, feeds)
    text = print_graph(graph)
    assert print_graph(parse_graph(text, named_tensors(graph))) == text
    compiled = glowstone.compile(model, cache=False, options={"check": True})
    for arrays in (feeds, *others):
        expected = peer.run(arrays)
        compiled.run(arrays)  # at a new shape this plans
        with machine_code_alone():
            found = compiled.run(arrays)
        specific = rebuild(graph, {name: array.shape for name, array in arrays.items()})
        interpreted, evaluated = interpret_graph(specific, arrays), evaluate_graph(specific, arrays)
        for name, array in expected.items():
            assert_agrees(found[name], array, name)
            assert_agrees(interpreted[name], array, f"{name}, interpreted")
            assert_agrees(evaluated[name], array, f"{name}, evaluated")
    return compiled


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


BRANCHES = """
main (bool c, float[3, 64] x, float[64, 64] w) => (float[3, 64] y) {
  scaled = Mul(x, x)
  y = If(c) <
    then_branch = heavy () => (float[3, 64] a) {
      once = MatMul(scaled, w)
      twice = MatMul(once, w)
      a = Tanh(twice)
    },
    else_branch = light () => (float[3, 64] b) { b = Neg(x) }
  >
}
"""


def test_branches_of_different_cost():
    model = model_of(BRANCHES)
    arrays = {"x": normal(3, 64), "w": normal(64, 64, seed=1) / 8}
    feeds = [{"c": np.array(truth), **arrays} for truth in (True, False, True)]
    graph = imported(model, feeds[0])
    assert operators(graph).count("If") == 1
    check(model, *feeds)


def test_a_known_condition_leaves_one_branch():
    text = BRANCHES.replace("bool c, ", "").replace("scaled =", "c = Constant <value = bool {0}> ()\n  scaled =")
    graph = imported(model_of(text), {"x": normal(3, 64), "w": normal(64, 64)})
    assert operators(graph).count("If") == 0
    assert "MatMul" not in operators(graph)


def test_branches_give_what_is_around_them_and_constants():
    model = model_of("""
    main (bool[1] c, float[2, 3] x, int64[4] n, bool[2] m) => (float[2, 3] y, int64[4] k, bool[2] b) {
      y, k, b = If(c) <
        then_branch = first () => (float[2, 3] y1, int64[4] k1, bool[2] b1) {
          y1 = Identity(x)
          k1 = Constant <value = int64[4] {7, 8, 9, -1}> ()
          b1 = Not(m)
        },
        else_branch = second () => (float[2, 3] y2, int64[4] k2, bool[2] b2) {
          y2 = Add(x, x)
          k2 = Add(n, n)
          b2 = Identity(m)
        }
      >
    }
    """)
    arrays = {"x": normal(2, 3), "n": np.arange(4), "m": np.array([True, False])}
    check(model, {"c": np.array([True]), **arrays}, {"c": np.array([False]), **arrays})


RNN_STEP = """
      xw = MatMul({x}, w)
      hr = MatMul({h}, r)
      sum = Add(xw, hr)
      {out} = Tanh(sum)
"""
SCAN_RNN = f"""
main (float["t", "b", 5] x, float["b", 4] h0) => (float["b", 4] hn, float["t", "b", 4] hs)
<float[5, 4] w, float[4, 4] r> {{
  hn, hs = Scan <num_scan_inputs = 1, body = step (float["b", 4] h, float["b", 5] row) =>
    (float["b", 4] next, float["b", 4] out) {{
      {RNN_STEP.format(x="row", h="h", out="next")}
      out = Identity(next)
    }}> (h0, x)
}}
"""


def with_weights(model: onnx.ModelProto, **weights: np.ndarray) -> onnx.ModelProto:
    """The model with the content of its initializers put in."""
    del model.graph.initializer[:]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def rnn(text: str) -> onnx.ModelProto:
    graph = parser.parse_graph(text)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return with_weights(model, w=normal(5, 4, seed=2), r=normal(4, 4, seed=3))


def test_rnn_written_with_scan_at_many_shapes():
    shapes = [(7, 2), (7, 2), (3, 1), (1, 5), (11, 2)]
    feeds = [{"x": normal(t, b, 5, seed=t), "h0": normal(b, 4, seed=b)} for t, b in shapes]
    compiled = check(rnn(SCAN_RNN), *feeds)
    operations = [entry["operation"] for entry in compiled.report()["instructions"]]
    assert operations.count("LoopBegin") == operations.count("LoopEnd") == 1
    assert operations.count("MatMul") + operations.count("PackedMatMul") == 2  # not unrolled


LOOP_RNN = f"""
main (int64 n, bool go, float["t", "b", 5] x, float["b", 4] h0) => (float["b", 4] hn)
<float[5, 4] w, float[4, 4] r> {{
  hn = Loop(n, go, h0) <body = step (int64 i, bool c, float["b", 4] h) => (bool c2, float["b", 4] next) {{
      c2 = Identity(c)
      row = Gather <axis = 0> (x, i)
      {RNN_STEP.format(x="row", h="h", out="next")}
    }}>
}}
"""


def test_rnn_written_with_loop_counts_at_run_time():
    arrays = {"x": normal(6, 2, 5), "h0": normal(2, 4, seed=1)}
    feeds = [
        {"n": np.array(n), "go": np.array(go), **arrays} for n, go in ((6, True), (0, True), (4, False), (1, True))
    ]
    compiled = check(rnn(LOOP_RNN), *feeds)
    with pytest.raises(glowstone.ExecutionError, match="out of range"):
        compiled.run({"n": np.array(7), "go": np.array(True), **arrays})
    assert_agrees(compiled.run(feeds[0])["hn"], Peer(rnn(LOOP_RNN).SerializeToString()).run(feeds[0])["hn"])


def test_scan_axes_and_directions():
    model = model_of("""
    main (float[2] s0, float[2, 6] a, float[6, 3] b) => (float[2] s, float[2, 6] u, float[6, 3] v) {
      s, u, v = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],
                      scan_output_axes = [-1, 0], scan_output_directions = [0, 1],
        body = step (float[2] state, float[2] p, float[3] q) => (float[2] next, float[2] first, float[3] second) {
          next = Add(state, p)
          first = Mul(next, p)
          total = ReduceSum <keepdims = 1> (next)
          second = Add(q, total)
        }> (s0, a, b)
    }
    """)
    check(model, {"s0": normal(2), "a": normal(2, 6, seed=1), "b": normal(6, 3, seed=2)})


def test_scan_of_opset_8_with_lengths():
    model = model_of(
        """
    main (int64[3] lengths, float[3, 2] s0, float[3, 5, 2] x) => (float[3, 2] s, float[3, 5, 2] y) {
      s, y = Scan <num_scan_inputs = 1, directions = [0],
        body = step (float[2] state, float[2] row) => (float[2] next, float[2] out) {
          next = Add(state, row)
          out = Mul(next, next)
        }> (lengths, s0, x)
    }
    """,
        opset=8,
    )
    arrays = {"s0": normal(3, 2), "x": normal(3, 5, 2, seed=1)}
    check(model, {"lengths": np.array([5, 2, 4]), **arrays}, {"lengths": np.array([1, 5, 3]), **arrays})


def test_values_change_places():
    """Fibonacci numbers: what is carried is exchanged at the end of each pass; the condition is carried too."""
    model = model_of("""
    main (int64 limit, int64 a0, int64 b0) => (int64 a, int64 b, bool more) {
      count = Constant <value = int64 {60}> ()
      yes = Constant <value = bool {1}> ()
      a, b, more = Loop(count, yes, a0, b0, yes) <body = step (int64 i, bool c, int64 x, int64 y, bool before) =>
        (bool go, int64 x2, int64 y2, bool below) {
          go = Identity(before)
          x2 = Identity(y)
          y2 = Add(x, y)
          below = Less(y2, limit)
        }>
    }
    """)
    feeds = [{"limit": np.array(limit), "a0": np.array(0), "b0": np.array(1)} for limit in (100, 0, 2, 10**15)]
    check(model, *feeds)


def test_while_without_a_count():
    model = model_of("""
    main (float[3] x, float bound, bool go) => (float[3] y, int64 n) {
      zero = Constant <value = int64 {0}> ()
      y, n = Loop("", go, x, zero) <body = step (int64 i, bool c, float[3] v, int64 k) =>
        (bool more, float[3] half, int64 next) {
          two = Constant <value = float {2.0}> ()
          one = Constant <value = int64 {1}> ()
          half = Div(v, two)
          top = ReduceMax <keepdims = 0> (half)
          more = Greater(top, bound)
          next = Add(k, one)
        }>
    }
    """)
    x = np.array([5.0, 900.0, -3.0], np.float32)
    feeds = [(1.0, True), (1.0, False), (1e9, True), (0.001, True)]
    check(model, *({"x": x, "bound": np.array(b, np.float32), "go": np.array(go)} for b, go in feeds))


NESTED = """
main (int64 n, float[4] x, float[4] y) => (float[4] z) {
  yes = Constant <value = bool {1}> ()
  far = Add(x, y)
  z = Loop(n, yes, x) <body = outer (int64 i, bool c, float[4] v) => (bool c2, float[4] v2) {
    c2 = Identity(c)
    two = Constant <value = int64 {2}> ()
    odd_number = Mod(i, two)
    odd = Cast <to = 9> (odd_number)
    v2 = If(odd) <
      then_branch = once () => (float[4] a) {
        inner = Loop(two, c, v) <body = repeat (int64 j, bool d, float[4] u) => (bool d2, float[4] u2) {
          d2 = Identity(d)
          t = Mul(u, far)
          u2 = Sub(t, y)
        }>
        a = Sin(inner)
      },
      else_branch = other () => (float[4] b) {
        is_first = Equal(i, two)
        b = If(is_first) <
          then_branch = second () => (float[4] p) { p = Add(v, far) },
          else_branch = third () => (float[4] q) { q = Cos(v) }
        >
      }
    >
  }>
}
"""


def test_nested_if_in_loop_captures_two_levels_up():
    arrays = {"x": normal(4), "y": normal(4, seed=1)}
    check(model_of(NESTED), *({"n": np.array(n), **arrays} for n in (5, 0, 1, 2, -4)))


def test_a_name_inside_hides_the_one_around():
    graph = parser.parse_graph("""
    main (bool c, float[2] x) => (float[2] y) {
      t = Neg(x)
      y = If(c) <
        then_branch = first () => (float[2] a) { t = Exp(x) a = Add(t, t) },
        else_branch = second () => (float[2] a) { a = Abs(t) }
      >
    }
    """)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    compiled = glowstone.compile(model)
    x = normal(2)
    np.testing.assert_allclose(compiled.run({"c": np.array(True), "x": x})["y"], 2 * np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(compiled.run({"c": np.array(False), "x": x})["y"], np.abs(x))


DECODER = """
main (int64 most, int64 first, float[16, 8] cache0) => (int64[6] tokens, int64 last, float[16, 8] cache)
<float[12, 8] table, float[8, 12] head> {
  yes = Constant <value = bool {1}> ()
  none = Constant <value = int64[6] {0, 0, 0, 0, 0, 0}> ()
  tokens, last, cache = Loop(most, yes, none, first, cache0) <body = step
    (int64 i, bool c, int64[6] seen, int64 token, float[16, 8] kv) =>
    (bool more, int64[6] seen2, int64 next, float[16, 8] kv2) {
      axis = Constant <value = int64[1] {0}> ()
      shape = Constant <value = int64[2] {1, 1}> ()
      place = Reshape(i, shape)
      row = Gather <axis = 0> (table, token)
      rows = Unsqueeze(row, axis)
      kv2 = ScatterND(kv, place, rows)
      scores = MatMul(kv2, row)
      weights = Softmax <axis = 0> (scores)
      mixed = MatMul(weights, kv2)
      logits = MatMul(mixed, head)
      next = ArgMax <axis = 0, keepdims = 0> (logits)
      values = Unsqueeze(next, axis)
      seen2 = ScatterND(seen, place, values)
      three = Constant <value = int64 {3}> ()
      is_end = Equal(next, three)
      more = Not(is_end)
    }>
}
"""


def test_greedy_decoding_with_a_cache_of_fixed_size():
    graph = parser.parse_graph(DECODER)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = with_weights(model, table=normal(12, 8, seed=5), head=normal(8, 12, seed=6))
    cache = np.zeros((16, 8), np.float32)
    feeds = [{"most": np.array(m), "first": np.array(f), "cache0": cache} for m, f in ((6, 1), (6, 7), (2, 4), (0, 2))]
    check(model, *feeds)


def test_rows_of_a_loop_with_a_known_count():
    model = model_of("""
    main (float[2, 3] x) => (float[2, 3] last, float[5, 2, 3] all, int64[5] numbers) {
      n = Constant <value = int64 {5}> ()
      last, all, numbers = Loop(n, "", x) <body = step (int64 i, bool c, float[2, 3] v) =>
        (bool c2, float[2, 3] w, float[2, 3] row, int64 number) {
          c2 = Constant <value = bool {1}> ()
          w = Add(v, v)
          row = Neg(w)
          number = Mul(i, i)
        }>
    }
    """)
    compiled = check(model, {"x": normal(2, 3)})
    assert "LoopBegin" in [entry["operation"] for entry in compiled.report()["instructions"]]


def test_the_body_may_use_nothing_of_its_inputs():
    model = model_of("""
    main (int64 n, float[2] x) => (float[2] y) {
      yes = Constant <value = bool {1}> ()
      y = Loop(n, yes, x) <body = step (int64 i, bool c, float[2] v) => (bool c2, float[2] w) {
          c2 = Constant <value = bool {1}> ()
          w = Constant <value = float[2] {3.0, 4.0}> ()
        }>
    }
    """)
    check(model, *({"n": np.array(n), "x": normal(2)} for n in (0, 1, 3)))


def test_a_condition_on_a_shape_serves_every_shape():
    """What exporters write for squeeze: which branch is taken follows from the extent, and decides the rank."""
    model = model_of("""
    main (float["n", 3] x) => (float["m"] y) {
      shape = Shape(x)
      zero = Constant <value = int64 {0}> ()
      one = Constant <value = int64 {1}> ()
      extent = Gather <axis = 0> (shape, zero)
      is_one = Equal(extent, one)
      flat = If(is_one) <
        then_branch = squeezed () => (float[3] a) { axis = Constant <value = int64[1] {0}> () a = Squeeze(x, axis) },
        else_branch = summed () => (float[3] b) {
          axes = Constant <value = int64[1] {0}> ()
          b = ReduceSum <keepdims = 0> (x, axes)
        }
      >
      y = Neg(flat)
    }
    """)
    peer, compiled = Peer(model.SerializeToString()), glowstone.compile(model, cache=False)
    for extent in (1, 4, 2, 1, 7):
        feeds = {"x": normal(extent, 3, seed=extent)}
        assert_agrees(compiled.run(feeds)["y"], peer.run(feeds)["y"])


def test_growing_values_of_a_known_count_are_unrolled():
    model = model_of("""
    main (float[1, 2] x) => (float[4, 2] y) {
      n = Constant <value = int64 {3}> ()
      yes = Constant <value = bool {1}> ()
      y = Loop(n, yes, x) <body = step (int64 i, bool c, float["k", 2] v) => (bool c2, float["j", 2] w) {
          c2 = Identity(c)
          w = Concat <axis = 0> (v, x)
        }>
    }
    """)
    feeds = {"x": normal(1, 2)}
    assert_agrees(glowstone.compile(model).run(feeds)["y"], np.tile(feeds["x"], (4, 1)))


@pytest.mark.parametrize("element", ["float16", "double", "int8", "uint16", "int32", "bool"])
def test_element_types(element):
    step = "w = Not(v)" if element == "bool" else "w = Add(v, x)"
    model = model_of(f"""
    main (int64 n, {element}[3] x) => ({element}[3] y) {{
      yes = Constant <value = bool {{1}}> ()
      y = Loop(n, yes, x) <body = step (int64 i, bool c, {element}[3] v) => (bool c2, {element}[3] w) {{
          c2 = Identity(c)
          {step}
        }}>
    }}
    """)
    dtype = helper.tensor_dtype_to_np_dtype(model.graph.input[1].type.tensor_type.elem_type)
    x = np.array([1, 0, 3]).astype(dtype)
    feeds = {"n": np.array(3), "x": x}
    expected = ~x if element == "bool" else x * dtype.type(4)
    compiled = glowstone.compile(model, cache=False, options={"check": True})
    np.testing.assert_array_equal(compiled.run(feeds)["y"], expected)
    np.testing.assert_array_equal(interpret_graph(imported(model, feeds), feeds)["y"], expected)


def test_the_number_of_threads_changes_nothing():
    model = rnn(SCAN_RNN)
    large = {"x": normal(20, 300, 5), "h0": normal(300, 4)}
    results = [glowstone.compile(model, threads=threads).run(large) for threads in (1, 2, 4)]
    for other in results[1:]:
        for name, array in results[0].items():
            assert other[name].tobytes() == array.tobytes(), name


def test_the_cache_holds_models_with_control_flow(tmp_path):
    options = {"cache_dir": str(tmp_path)}
    feeds = {"x": normal(4, 2, 5), "h0": normal(2, 4)}
    other = {"x": normal(9, 3, 5), "h0": normal(3, 4)}
    first = glowstone.compile(rnn(SCAN_RNN), options=options)
    second = glowstone.compile(rnn(SCAN_RNN), options=options)
    for arrays in (feeds, other):
        for name, array in first.run(arrays).items():
            assert second.run(arrays)[name].tobytes() == array.tobytes()


def test_faults_of_models_are_refused():
    def refused(kind: type[GlowstoneError], text: str, names: Sequence[str]) -> None:
        with pytest.raises(kind) as caught:
            glowstone.compile(rnn(text))
        for name in names:
            assert name in str(caught.value)

    refused(ModelError, BRANCHES.replace("Neg(x)", "Neg(missing)"), ["missing"])
    refused(ModelError, BRANCHES.replace("bool c", "float c"), ["condition", "If"])
    without_condition = LOOP_RNN.replace("int64 i, bool c,", "int64 i,").replace("Identity(c)", "Identity(go)")
    refused(ModelError, without_condition, ["inputs", "Loop"])
    refused(GlowstoneError, SCAN_RNN.replace("num_scan_inputs = 1", "num_scan_inputs = 5"), ["num_scan_inputs"])


def test_bodies_do_not_take_part_in_equality():
    graph = imported(model_of(BRANCHES), {"c": np.array(True), "x": normal(3, 64), "w": normal(64, 64)})
    (node,) = (node for node in graph.nodes if isinstance(node.operator, If))
    assert node.operator == node.operator
    (again,) = (node for node in rebuild(graph).nodes if isinstance(node.operator, If | Loop))
    assert again.operator != node.operator


def test_bundles_hold_loops(tmp_path):
    """As a shared library, called from here on this thread."""
    model = glowstone.compile(rnn(LOOP_RNN), shapes={"x": (6, 2, 5), "h0": (2, 4)}, cache=False)
    object_file, header = model.write_bundle(tmp_path, "network")
    library = tmp_path / "network.so"
    command = [sys.executable, "-m", "ziglang", "cc", "-shared", str(object_file), "-o", str(library)]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
    size = int(re.findall(r"ARENA_BYTES (\d+)", header.read_text())[0])
    arena = aligned_bytes(size)
    for count in (6, 0, 3):
        feeds = {"n": np.array(count), "go": np.array(True), "x": normal(6, 2, 5), "h0": normal(2, 4)}
        out = np.empty((2, 4), np.float32)
        inputs = (ctypes.c_void_p * 4)(*(feeds[info.name].ctypes.data for info in model.inputs))
        outputs = (ctypes.c_void_p * 1)(out.ctypes.data)
        assert ctypes.CDLL(str(library)).network_run(inputs, outputs, ctypes.c_void_p(arena.ctypes.data)) == 0
        assert out.tobytes() == model.run(feeds)["hn"].tobytes()


def test_exported_models_show_the_bodies():
    feeds = {"c": np.array(True), "x": normal(3, 64), "w": normal(64, 64)}
    exported = export_graph(imported(model_of(BRANCHES), feeds))
    (node,) = (node for node in exported.graph.node if node.op_type == "If")
    bodies = {attribute.name: [part.op_type for part in attribute.g.node] for attribute in node.attribute}
    assert bodies == {"then_body": ["MatMul", "MatMul", "Tanh"], "else_body": ["Neg"]}


@pytest.mark.parametrize("count", [0, 2, 3])
def test_rows_behind_the_last_pass_are_zero(count):
    """Where a count that is known ends a loop before the rows that it scans do."""
    graph = graph_of(f"""
        "known"
        input %x: f32[3,2]
        %0 = Constant{{tensor=i64[]{{{count}}}}}() : i64[]
        %1, %2 = Loop{{body={{ "body"
          input %number: i64[]
          input %row: f32[2]
          %0 = Constant{{tensor=bool[]{{True}}}}() : bool[]
          output goes_on = %0
          output row = %row
        }}, scanned=1}}(%0, _, %x) : f32[3,2], i64[]
        output y = %1
        """)
    x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    expected = x * (np.arange(3) < count)[:, None]
    for run in (evaluate_graph, interpret_graph, lambda graph, feeds: compile_graph(graph).run(feeds)):
        np.testing.assert_array_equal(run(graph, {"x": x})["y"], expected)
