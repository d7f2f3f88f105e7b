"""recover_activations, recover_softmax and recover_rms_normalization: the forms exporters write, and what only looks
like them.
"""

from __future__ import annotations

import textwrap

import pytest
from helpers.graph_text import assert_same_results, check_unchanged, graph_of, random_inputs, run_checked

from glowstone.graph import evaluate_graph
from glowstone.graph_passes.merge_limits import merge_limits
from glowstone.graph_passes.recover_activations import recover_activations
from glowstone.graph_passes.recover_rms_normalization import recover_rms_normalization
from glowstone.graph_passes.recover_softmax import recover_softmax

X = 'input %x: f32[3,4] ("n", 4)\n'
TYPE = " : f32[3,4]\n"


def formula(lines: str, type: str = TYPE) -> str:
    """A graph of x: lines `%0 = Exp(%x)` get the type, `%1 := 2.0` is a constant, the last value is the output."""
    text, last = X, ""
    for line in textwrap.dedent(lines).strip().split("\n"):
        name, _, what = line.partition(" := ")
        if what:
            text += f"{name} = Constant{{tensor=f32[]{{{what}}}}}() : f32[]\n"
        else:
            text += line + ("\n" if " : " in line else type)
            last = line.split(" ")[0]
    return text + f"output y = {last}\n"


FORMULAS = {
    "Sigmoid, reciprocal": ("Sigmoid", "%0 = Neg(%x)\n%1 = Exp(%0)\n%2 := 1.0\n%3 = Add(%1, %2)\n%4 = Reciprocal(%3)"),
    "Sigmoid, quotient": ("Sigmoid", "%0 = Neg(%x)\n%1 = Exp(%0)\n%2 := 1.0\n%3 = Add(%2, %1)\n%4 = Div(%2, %3)"),
    "Swish": ("Swish", "%0 = Sigmoid(%x)\n%1 = Mul(%0, %x)"),
    "Swish, quotient": ("Swish", "%0 = Neg(%x)\n%1 = Exp(%0)\n%2 := 1.0\n%3 = Add(%2, %1)\n%4 = Div(%x, %3)"),
    "Swish, scaled": (
        "Swish{alpha=1.7020000219345093}",
        "%0 := 1.702\n%1 = Mul(%0, %x)\n%2 = Sigmoid(%1)\n%3 = Mul(%x, %2)",
    ),
    "HardSigmoid": (
        "HardSigmoid{alpha=0.25}",
        "%0 := 0.25\n%1 := 0.5\n%2 := 0.0\n%3 := 1.0\n%4 = Mul(%x, %0)\n%5 = Add(%1, %4)\n%6 = Clip(%5, %2, %3)",
    ),
    "HardSigmoid, divided": (
        "HardSigmoid{alpha=0.16666666666666666}",
        "%0 := 3.0\n%1 := 6.0\n%2 := 0.0\n%3 = Add(%x, %0)\n%4 = Clip(%3, %2, %1)\n%5 = Div(%4, %1)",
    ),
    "HardSwish": (
        "HardSwish",
        "%0 := 3.0\n%1 := 6.0\n%2 := 0.0\n%3 = Add(%0, %x)\n%4 = Clip(%3, %2, %1)\n%5 = Mul(%x, %4)\n%6 = Div(%5, %1)",
    ),
    "HardSwish, gate first": (
        "HardSwish",
        (
            "%0 := 3.0\n%1 := 6.0\n%2 := 0.0\n%3 := 0.16666667\n"
            "%4 = Add(%0, %x)\n%5 = Clip(%4, %2, %1)\n%6 = Mul(%3, %5)\n%7 = Mul(%6, %x)"
        ),
    ),
    "Softplus": ("Softplus", "%0 = Exp(%x)\n%1 := 1.0\n%2 = Add(%1, %0)\n%3 = Log(%2)"),
    "Mish": ("Mish", "%0 = Exp(%x)\n%1 := 1.0\n%2 = Add(%0, %1)\n%3 = Log(%2)\n%4 = Tanh(%3)\n%5 = Mul(%x, %4)"),
    "LeakyRelu": ("LeakyRelu{alpha=0.25}", "%0 := 0.25\n%1 = Mul(%x, %0)\n%2 = Maximum(%1, %x)"),
    "Gelu": (
        "Gelu",
        (
            "%0 := 1.4142135\n%1 := 1.0\n%2 := 0.5\n"
            "%3 = Div(%x, %0)\n%4 = Erf(%3)\n%5 = Add(%4, %1)\n%6 = Mul(%x, %5)\n%7 = Mul(%6, %2)"
        ),
    ),
    "Gelu, half first": (
        "Gelu",
        (
            "%0 := 0.70710677\n%1 := 1.0\n%2 := 0.5\n"
            "%3 = Mul(%0, %x)\n%4 = Erf(%3)\n%5 = Add(%1, %4)\n%6 = Mul(%2, %x)\n%7 = Mul(%6, %5)"
        ),
    ),
    "Gelu, tanh": (
        "Gelu{approximate=True}",
        (
            "%0 := 0.044715\n%1 := 1.0\n%2 := 0.5\n%3 := 0.7978846\n%4 := 3.0\n"
            "%5 = Pow(%x, %4)\n%6 = Mul(%0, %5)\n%7 = Add(%x, %6)\n%8 = Mul(%7, %3)\n%9 = Tanh(%8)\n"
            "%10 = Add(%9, %1)\n%11 = Mul(%x, %2)\n%12 = Mul(%11, %10)"
        ),
    ),
    "Gelu, tanh of a product": (
        "Gelu{approximate=True}",
        (
            "%0 := 0.044715\n%1 := 1.0\n%2 := 0.5\n%3 := 0.7978846\n"
            "%4 = Mul(%x, %3)\n%5 = Mul(%x, %0)\n%6 = Mul(%5, %x)\n%7 = Add(%1, %6)\n%8 = Mul(%4, %7)\n%9 = Tanh(%8)\n"
            "%10 = Add(%1, %9)\n%11 = Mul(%10, %x)\n%12 = Mul(%11, %2)"
        ),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_become_one_operator(name):
    wanted, lines = FORMULAS[name]
    graph = graph_of(formula(lines))
    inputs = random_inputs(graph)
    expected = evaluate_graph(graph, inputs)
    assert run_checked(graph, recover_activations)
    (node,) = graph.nodes
    assert str(node.operator.name) == wanted.split("{")[0]
    for field in wanted.partition("{")[2].rstrip("}").split(","):
        key, _, value = field.partition("=")
        if key:
            assert node.operator.attributes()[key] == pytest.approx(float(value == "True" or value), rel=1e-4)
    assert_same_results(evaluate_graph(graph, inputs), expected)
    assert not run_checked(graph, recover_activations)


LOOKALIKES = [
    "%0 = Exp(%x)\n%1 := 1.0\n%2 = Add(%1, %0)\n%3 = Div(%x, %2)",
    "%0 = Exp(%x)\n%1 := 2.0\n%2 = Add(%1, %0)\n%3 = Log(%2)",
    "%0 := 1.5\n%1 = Mul(%x, %0)\n%2 = Maximum(%1, %x)",
    "%0 = Neg(%x)\n%1 = Sigmoid(%x)\n%2 = Exp(%0)\n%3 = Mul(%2, %1)",
    "%0 := 2.0\n%1 := 6.0\n%2 := 0.0\n%3 = Add(%0, %x)\n%4 = Clip(%3, %2, %1)\n%5 = Mul(%x, %4)\n%6 = Div(%5, %1)",
    (
        "%0 := 1.4142135\n%1 := 1.0\n%2 := 0.25\n"
        "%3 = Div(%x, %0)\n%4 = Erf(%3)\n%5 = Add(%4, %1)\n%6 = Mul(%x, %5)\n%7 = Mul(%6, %2)"
    ),
    (
        "%0 := 1.5\n%1 := 1.0\n%2 := 0.5\n"
        "%3 = Div(%x, %0)\n%4 = Erf(%3)\n%5 = Add(%4, %1)\n%6 = Mul(%x, %5)\n%7 = Mul(%6, %2)"
    ),
    (
        "%0 := 0.044715\n%1 := 1.0\n%2 := 0.5\n%3 := 0.7978846\n%4 := 2.0\n"
        "%5 = Pow(%x, %4)\n%6 = Mul(%0, %5)\n%7 = Add(%x, %6)\n%8 = Mul(%7, %3)\n%9 = Tanh(%8)\n"
        "%10 = Add(%9, %1)\n%11 = Mul(%x, %2)\n%12 = Mul(%11, %10)"
    ),
]


@pytest.mark.parametrize("lines", LOOKALIKES)
def test_what_only_looks_like_it_stays(lines):
    text = formula(lines)
    if "Clip" not in lines:
        check_unchanged(recover_activations, text)
        return
    graph = graph_of(text)
    run_checked(graph, recover_activations)
    assert "HardSwish" not in [node.operator.name for node in graph.nodes]


def test_numbers_that_add_axes_are_none_of_the_formula():
    check_unchanged(
        recover_activations,
        """
        input %x: f32[3,4]
        %0 = Constant{tensor=f32[1,1,1]{1.0}}() : f32[1,1,1]
        %1 = Exp(%x) : f32[3,4]
        %2 = Add(%1, %0) : f32[1,3,4]
        %3 = Log(%2) : f32[1,3,4]
        output y = %3
        """,
    )


def test_limits_and_then_hard_swish():
    graph = graph_of(
        formula(
            "%0 := 3.0\n%1 := 6.0\n%2 := 0.0\n%3 = Add(%0, %x)\n%4 = Relu(%3)\n%5 = Minimum(%4, %1)\n"
            "%6 = Mul(%x, %5)\n%7 = Div(%6, %1)"
        )
    )
    assert run_checked(graph, merge_limits, recover_activations)
    assert [node.operator.name for node in graph.nodes] == ["HardSwish"]


SHIFTED = """
    input %x: f32[2,5] ("n", 5)
    %0 = ReduceMax{axes=(1)}(%x) : f32[2,1]
    %1 = Sub(%x, %0) : f32[2,5]
    %2 = Exp(%1) : f32[2,5]
    %3 = ReduceSum{axes=(-1)}(%2) : f32[2,1]
    %4 = Reciprocal(%3) : f32[2,1]
    %5 = Mul(%4, %2) : f32[2,5]
    output y = %5
    """
PLAIN = """
    input %x: f32[2,5] ("n", 5)
    %0 = Exp(%x) : f32[2,5]
    %1 = ReduceSum{axes=(0)}(%0) : f32[1,5]
    %2 = Div(%0, %1) : f32[2,5]
    output y = %2
    """


@pytest.mark.parametrize(("text", "axis"), [(SHIFTED, 1), (PLAIN, 0)])
def test_softmax(text, axis):
    graph = graph_of(text)
    inputs = random_inputs(graph)
    expected = evaluate_graph(graph, inputs)
    assert run_checked(graph, recover_softmax)
    (node,) = graph.nodes
    assert (node.operator.name, node.operator.attributes()) == ("Softmax", {"axis": axis})
    assert_same_results(evaluate_graph(graph, inputs), expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [("ReduceSum{axes=(0)}", "ReduceMean{axes=(0)}"), ("ReduceSum{axes=(0)}(%0)", "ReduceSum{axes=(0)}(%x)")],
)
def test_what_is_no_softmax_stays(old, new):
    assert old in PLAIN
    check_unchanged(recover_softmax, PLAIN.replace(old, new))


RMS = """
    input %x: f32[2,3,2] ("n", "m", 2)
    %0 = Constant{tensor=f32[]{2.0}}() : f32[]
    %1 = Pow(%x, %0) : f32[2,3,2]
    %2 = ReduceMean{axes=(-1)}(%1) : f32[2,3,1]
    %3 = Constant{tensor=f32[]{0.5}}() : f32[]
    %4 = Add(%3, %2) : f32[2,3,1]
    %5 = Sqrt(%4) : f32[2,3,1]
    %6 = Reciprocal(%5) : f32[2,3,1]
    %7 = Mul(%x, %6) : f32[2,3,2]
    %8 = Constant{tensor=f32[2]{3.0, 4.0}}() : f32[2]
    %9 = Mul(%8, %7) : f32[2,3,2]
    output y = %9
    """
HALF_RMS = """
    input %h: f16[3,2]
    %0 = Cast(%h) : f32[3,2]
    %1 = Mul(%0, %0) : f32[3,2]
    %2 = ReduceMean{axes=(1)}(%1) : f32[3,1]
    %3 = Constant{tensor=f32[1]{0.5}}() : f32[1]
    %4 = Add(%2, %3) : f32[3,1]
    %5 = Sqrt(%4) : f32[3,1]
    %6 = Div(%0, %5) : f32[3,2]
    %7 = Cast{to=f16}(%6) : f16[3,2]
    %8 = Constant{tensor=f16[2]{3.0, 4.0}}() : f16[2]
    %9 = Mul(%8, %7) : f16[3,2]
    output y = %9
    """


@pytest.mark.parametrize("text", [RMS, HALF_RMS])
def test_rms_normalization(text):
    graph = graph_of(text)
    inputs = random_inputs(graph)
    expected = evaluate_graph(graph, inputs)
    assert run_checked(graph, recover_rms_normalization)
    assert [node.operator.name for node in graph.nodes] == ["Constant", "RMSNormalization"]
    assert graph.nodes[-1].operator.attributes() == {"axis": -1, "epsilon": 0.5}
    assert_same_results(evaluate_graph(graph, inputs), expected, 2e-3 if "f16" in text else 1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Constant{tensor=f32[]{2.0}}", "Constant{tensor=f32[]{3.0}}"),
        ("Mul(%x, %6)", "Mul(%1, %6)"),
        ("Reciprocal(%5)", "Neg(%5)"),
    ],
)
def test_what_is_no_rms_normalization_stays(old, new):
    assert old in RMS
    check_unchanged(recover_rms_normalization, RMS.replace(old, new))
