"""Branches and loops whose shapes follow from data, or change from pass to pass."""

from __future__ import annotations

import numpy as np
from helpers.machine_code import machine_code_alone
from helpers.stepped import BOOL, FLOAT, INT64, check, info, made, model_of, node
from onnx import helper

import glowstone

random = np.random.default_rng(62)


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
    with machine_code_alone():
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


def test_a_loop_whose_count_is_computed():
    """Shapes stay as they are in it: the loop is part of the program, the count is known to the host."""
    body = helper.make_graph(
        [
            node("MatMul", ["v", "w"], ["p"]),
            node("Tanh", ["p"], ["v_out"]),
            node("ReduceSum", ["v_out"], ["row"], keepdims=0),
            node("Identity", ["go"], ["go_out"]),
        ],
        "body",
        [info("i", INT64, []), info("go", BOOL, []), info("v", FLOAT, [2, 3])],
        [info("go_out", BOOL, []), info("v_out", FLOAT, [2, 3]), info("row", FLOAT, [])],
    )
    nodes = [
        node("ReduceSum", ["numbers"], ["count"], keepdims=0),
        node("Loop", ["count", "", "x"], ["last", "rows"], body=body),
        node("Neg", ["rows"], ["y"]),
    ]
    constants = {"w": random.standard_normal((3, 3)).astype(np.float32)}
    inputs = [info("x", FLOAT, [2, 3]), info("numbers", INT64, ["n"])]
    model = model_of(nodes, inputs, [info("last", FLOAT, [2, 3]), info("y", FLOAT, ["m"])], constants)
    compiled = glowstone.compile(model)
    x = random.standard_normal((2, 3)).astype(np.float32)
    for numbers in ([2, 1], [7], [0]):
        check(model, compiled, {"x": x, "numbers": np.array(numbers)})
    assert compiled.report()["host_steps"] == 0


def test_what_one_branch_finds():
    """A branch with a result that only a run shows."""
    found = helper.make_graph(
        [node("NonZero", ["x"], ["p"]), node("Cast", ["p"], ["a"], to=FLOAT)], "found", [], [info("a", FLOAT, None)]
    )
    plain = helper.make_graph([node("Unsqueeze", ["x", "zero"], ["b"])], "plain", [], [info("b", FLOAT, None)])
    nodes = [node("If", ["c"], ["y"], then_branch=found, else_branch=plain), node("Neg", ["y"], ["z"])]
    inputs = [info("x", FLOAT, ["n"]), info("c", BOOL, [])]
    model = model_of(nodes, inputs, [info("z", FLOAT, [1, "m"])], {"zero": np.array([0])})
    compiled = glowstone.compile(model)
    x = np.array([0, 2, 0, 1], np.float32)
    for condition in (True, False, True):
        check(model, compiled, {"x": x, "c": np.array(condition)})


def test_branches_of_different_shapes_that_read_different_values():
    wide = helper.make_graph([node("Concat", ["x", "w"], ["a"], axis=1)], "wide", [], [info("a", FLOAT, None)])
    tall = helper.make_graph([node("Concat", ["x", "t"], ["b"], axis=0)], "tall", [], [info("b", FLOAT, None)])
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["c"]),
        node("If", ["c"], ["y"], then_branch=wide, else_branch=tall),
        node("Relu", ["y"], ["z"]),
        node("Shape", ["z"], ["extents"]),
    ]
    inputs = [info("x", FLOAT, ["n", 3]), info("w", FLOAT, ["n", "k"]), info("t", FLOAT, ["m", 3])]
    outputs = [info("z", FLOAT, None), info("extents", INT64, [2])]
    model = model_of(nodes, inputs, outputs, {"zero": np.array(0, np.float32)})
    compiled = glowstone.compile(model)
    w, t = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 5), (4, 3)))
    for sign in (1, -1, 1, -1):
        check(model, compiled, {"x": sign * np.ones((2, 3), np.float32), "w": w, "t": t})
    before = made(compiled)
    check(model, compiled, {"x": -np.ones((2, 3), np.float32), "w": w, "t": t})
    assert made(compiled) == before
    assert compiled.report()["host_steps"] == 0
