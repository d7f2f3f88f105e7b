"""Comparing two executions: the first value that differs is named, and the smallest part that shows it cut out."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowstone import examples
from glowstone.tools import compare as compare_module
from glowstone.tools.compare import compare_instructions, compare_values, load_whole
from glowstone.tools.difference import largest_difference, tolerance_of
from glowstone.tools.execution import run_cpu, run_evaluator, run_interpreter, run_onnxruntime
from glowstone.tools.stepping import IsolatedInstructions

INFINITY = float("inf")
LENGTH = 40


def chain(kinds: list[str]) -> onnx.ModelProto:
    """x [3] through unary operators, node n<i> making value v<i>, with a second branch from the first value on."""
    nodes = [
        helper.make_node(kind, ["x" if index == 0 else f"v{index - 1}"], [f"v{index}"], f"n{index}")
        for index, kind in enumerate(kinds)
    ]
    nodes.append(helper.make_node("Add", ["v0", f"v{len(kinds) - 1}"], ["sum"], "last"))
    nodes.append(helper.make_node("Mul", ["sum", "w"], ["y"], "scaled"))
    weights = numpy_helper.from_array(np.float32([1, 2, 3]), "w")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "chain", ports[:1], ports[1:], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


X = {"x": np.float32([0.25, -0.5, 2])}


class Faulty:
    """ONNX Runtime, but with Neg in place of nodes of this name, where a condition on the model holds."""

    def __init__(self, name: str, condition=lambda model: True):
        self.name = name
        self.condition = condition
        self.calls = 0

    def __call__(self, model, inputs):
        self.calls += 1
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        if self.condition(model):
            for node in copy.graph.node:
                if node.name == self.name:
                    node.op_type = "Neg"
        return run_onnxruntime(copy, inputs)


@pytest.mark.parametrize("position", [0, 1, 17, LENGTH - 1])
def test_the_first_wrong_node_is_found_in_few_runs(position):
    model = chain(["Ceil", "Identity"] * (LENGTH // 2))
    faulty = Faulty(f"n{position}")
    found = compare_values(model, X, faulty, run_onnxruntime)
    assert found.difference.value == f"v{position}"
    assert found.difference.source.endswith(f" n{position}")
    assert found.difference.amount > 0.1
    assert [node.name for node in found.part.model.graph.node] == [f"n{position}"]
    assert faulty.calls <= 2 + math.ceil(math.log2(LENGTH + 2))


def test_the_part_shows_the_difference_by_itself():
    model = chain(["Sigmoid", "Tanh", "Exp", "Sqrt"])
    faulty = Faulty("n2")
    part = compare_values(model, X, faulty, run_onnxruntime).part
    onnx.checker.check_model(part.model, full_check=True)
    assert (
        largest_difference(faulty(part.model, part.inputs)["v2"], run_onnxruntime(part.model, part.inputs)["v2"]) > 0.1
    )


def test_a_fault_that_needs_its_neighbours_keeps_them():
    model = chain(["Sigmoid", "Tanh", "Exp", "Sqrt", "Tanh", "Exp"])

    def has_both(candidate) -> bool:
        names = {node.name for node in candidate.graph.node}
        return {"n2", "n4"} <= names

    part = compare_values(model, X, Faulty("n4", has_both), run_onnxruntime).part
    assert has_both(part.model)
    assert len(part.model.graph.node) == 4  # one node, then two, then four


def test_a_difference_that_dies_out_before_the_outputs_is_found():
    damped = chain(["Sigmoid", "Identity", "Abs", "Exp"])
    faulty = Faulty("n1")
    found = compare_values(damped, X, faulty, run_onnxruntime)
    assert found.difference.value == "v1"
    assert faulty.calls == 3  # the model, all values, the part


def test_agreement_takes_two_runs():
    faulty = Faulty("nothing")
    found = compare_values(chain(["Sigmoid", "Tanh"]), X, faulty, run_evaluator)
    assert found.difference is None
    assert found.part is None
    assert found.compared == 4
    assert faulty.calls == 2


@pytest.mark.parametrize("run", [run_cpu, run_interpreter])
def test_all_executions_agree_on_the_digit_classifier(run):
    model = load_whole(examples.DIGITS)
    inputs = {examples.DIGITS_INPUT: examples.digit_images()[0][:2]}
    assert compare_values(model, inputs, run, run_onnxruntime).difference is None
    assert compare_values(model, inputs, run, run_evaluator).difference is None


def test_models_whose_inputs_decide_shapes_are_compared():
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], "exp"),
        helper.make_node("Reshape", ["e", "shape"], ["y"], "reshape"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])
    graph = helper.make_graph(nodes, "reshape", [x, shape], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    inputs = {"x": np.arange(6, dtype=np.float32), "shape": np.array([2, 3])}
    for backend, reference in (("cpu", "interpreter"), ("cpu", "evaluator"), ("interpreter", "onnxruntime")):
        assert compare_module.compare_model(model, inputs, backend, reference).difference is None
    found = compare_values(model, inputs, Faulty("exp"), run_onnxruntime)
    assert found.difference.value == "e"


def test_instructions_agree_on_the_digit_classifier():
    inputs = {examples.DIGITS_INPUT: examples.digit_images()[0][:2]}
    found = compare_instructions(load_whole(examples.DIGITS), inputs)
    assert found.difference is None
    assert found.compared >= 4


def test_a_wrong_instruction_is_blamed_and_its_nodes_cut_out(monkeypatch):
    run = IsolatedInstructions.run

    def wrong(self, instruction):
        run(self, instruction)
        if "dense" in instruction.names:
            for view in instruction.outputs:
                self.copies[view.buffer][0] += 100

    monkeypatch.setattr(IsolatedInstructions, "run", wrong)
    inputs = {examples.DIGITS_INPUT: examples.digit_images()[0][:2]}
    found = compare_instructions(load_whole(examples.DIGITS), inputs)
    assert "dense" in found.difference.value
    assert "dense" in [node.name for node in found.part.model.graph.node]
    onnx.checker.check_model(found.part.model, full_check=True)
    assert set(found.part.inputs) == {info.name for info in found.part.model.graph.input}
    (result,) = run_onnxruntime(found.part.model, found.part.inputs).values()
    assert len(result) == 2


def test_differences():
    ones = np.ones(3, np.float32)
    assert largest_difference(ones, ones) == 0
    assert largest_difference(np.float32([1, 2, 4.5]), np.float32([1, 2, 5])) == pytest.approx(0.1)
    assert largest_difference(ones, ones.astype(np.float64)) == INFINITY
    assert largest_difference(ones[:2], ones) == INFINITY
    assert largest_difference(np.float32([1, np.nan]), np.float32([1, np.nan])) == 0
    assert largest_difference(np.float32([1, np.nan]), np.float32([1, 2])) == INFINITY
    assert largest_difference(np.float32([1, np.inf]), np.float32([1, -np.inf])) == INFINITY
    assert largest_difference(np.array([1, 2]), np.array([1, 3])) == INFINITY
    assert largest_difference(np.float32([]), np.float32([])) == 0


def test_tolerances_by_element_type():
    assert tolerance_of(np.ones(1, np.float32)) < tolerance_of(np.ones(1, np.float16))
    assert tolerance_of(np.ones(1, np.int64), 0.5) == 0
    assert tolerance_of(np.ones(1, np.float16), 0.5) == 0.5


def test_backends_and_references_by_name(monkeypatch):
    called = []
    monkeypatch.setattr(compare_module, "compare_instructions", lambda *_: called.append("instructions"))
    compare_module.compare_model(chain(["Exp"]), X, "cpu", "interpreter")
    assert called == ["instructions"]
    assert compare_module.compare_model(chain(["Exp"]), X, "interpreter", "evaluator").difference is None
