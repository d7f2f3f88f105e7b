"""recover_layer_normalization, before and after."""

from __future__ import annotations

import pytest
from helpers.graph_text import check_pass, check_unchanged, graph_of, run_checked

from glowstone.graph_passes.recover_layer_normalization import recover_layer_normalization

AFFINE = """
        input %x: f32[2,5,2] ("n", "m", 2)
        %0 = ReduceMean{axes=(-1)}(%x) : f32[2,5,1]
        %1 = Sub(%x, %0) : f32[2,5,2]
        %2 = Constant{tensor=f32[]{2.0}}() : f32[]
        %3 = Pow(%1, %2) : f32[2,5,2]
        %4 = ReduceMean{axes=(2)}(%3) : f32[2,5,1]
        %5 = Constant{tensor=f32[]{0.5}}() : f32[]
        %6 = Add(%4, %5) : f32[2,5,1]
        %7 = Sqrt(%6) : f32[2,5,1]
        %8 = Div(%1, %7) : f32[2,5,2]
        %9 = Constant{tensor=f32[2]{3.0, 4.0}}() : f32[2]
        %10 = Mul(%8, %9) : f32[2,5,2]
        %11 = Constant{tensor=f32[2]{5.0, 6.0}}() : f32[2]
        %12 = Add(%11, %10) : f32[2,5,2] "last"
        output y = %12
        """
BARE = """
        input %x: f32[3,2]
        %0 = ReduceMean{axes=(1)}(%x) : f32[3,1]
        %1 = Sub(%x, %0) : f32[3,2]
        %2 = Mul(%1, %1) : f32[3,2]
        %3 = ReduceMean{axes=(1)}(%2) : f32[3,1]
        %4 = Constant{tensor=f32[1]{0.5}}() : f32[1]
        %5 = Add(%4, %3) : f32[3,1]
        %6 = Sqrt(%5) : f32[3,1]
        %7 = Div(%1, %6) : f32[3,2]
        output y = %7
        """


def test_with_scale_and_offset():
    check_pass(
        recover_layer_normalization,
        AFFINE,
        """
        input %x: f32[2,5,2] ("n", "m", 2)
        %0 = Constant{tensor=f32[2]{3.0, 4.0}}() : f32[2]
        %1 = Constant{tensor=f32[2]{5.0, 6.0}}() : f32[2]
        %2 = LayerNormalization{epsilon=0.5}(%x, %0, %1) : f32[2,5,2] "last"
        output y = %2
        """,
    )


def test_bare_with_the_square_as_a_product():
    check_pass(
        recover_layer_normalization,
        BARE,
        """
        input %x: f32[3,2]
        %0 = Constant{tensor=f32[2]{1.0, 1.0}}() : f32[2]
        %1 = LayerNormalization{epsilon=0.5}(%x, %0) : f32[3,2]
        output y = %1
        """,
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Constant{tensor=f32[]{2.0}}", "Constant{tensor=f32[]{3.0}}"),
        ("Pow(%1, %2)", "Pow(%x, %2)"),
        ("Sub(%x, %0)", "Sub(%0, %x)"),
        ("Div(%1, %7)", "Div(%x, %7)"),
    ],
)
def test_what_only_looks_like_it_stays(old, new):
    assert old in AFFINE
    check_unchanged(recover_layer_normalization, AFFINE.replace(old, new))


def test_a_norm_over_another_axis_stays():
    check_unchanged(
        recover_layer_normalization,
        """
        input %x: f32[3,2]
        %0 = ReduceMean{axes=(0)}(%x) : f32[1,2]
        %1 = Sub(%x, %0) : f32[3,2]
        %2 = Mul(%1, %1) : f32[3,2]
        %3 = ReduceMean{axes=(0)}(%2) : f32[1,2]
        %4 = Constant{tensor=f32[1]{0.5}}() : f32[1]
        %5 = Add(%4, %3) : f32[1,2]
        %6 = Sqrt(%5) : f32[1,2]
        %7 = Div(%1, %6) : f32[3,2]
        output y = %7
        """,
    )


def test_an_epsilon_that_adds_axes_stays():
    text = BARE.replace("f32[1]", "f32[1,1,1]")
    text = text.replace("Add(%4, %3) : f32[3,1]", "Add(%4, %3) : f32[1,3,1]")
    text = text.replace("Sqrt(%5) : f32[3,1]", "Sqrt(%5) : f32[1,3,1]")
    check_unchanged(recover_layer_normalization, text.replace("Div(%1, %6) : f32[3,2]", "Div(%1, %6) : f32[1,3,2]"))


def test_a_normalized_value_that_others_read_keeps_its_scale_apart():
    graph = graph_of(AFFINE.rstrip() + "\n        output normal = %8\n")
    assert run_checked(graph, recover_layer_normalization)
    names = [node.operator.name for node in graph.nodes if node.operator.name != "Constant"]
    assert names == ["LayerNormalization", "Mul", "Add"]


INVERSE_ROOTS = {
    "reciprocal": "%6 = Sqrt(%5) : f32[3,1,1]\n%7 = Reciprocal(%6) : f32[3,1,1]\n%8 = Mul(%7, %1) : f32[3,2,2]",
    "quotient": "%6 = Sqrt(%5) : f32[3,1,1]\n%7 = Constant{tensor=f32[]{1.0}}() : f32[]\n"
    "%8 = Div(%7, %6) : f32[3,1,1]\n%9 = Mul(%1, %8) : f32[3,2,2]",
    "power": "%6 = Constant{tensor=f32[]{-0.5}}() : f32[]\n%7 = Pow(%5, %6) : f32[3,1,1]\n"
    "%8 = Mul(%7, %1) : f32[3,2,2]",
}


@pytest.mark.parametrize("form", INVERSE_ROOTS)
def test_over_several_axes_with_an_inverse_root(form):
    check_pass(
        recover_layer_normalization,
        f"""
input %x: f32[3,2,2] ("n", 2, 2)
%0 = ReduceMean{{axes=(1, 2)}}(%x) : f32[3,1,1]
%1 = Sub(%x, %0) : f32[3,2,2]
%2 = Mul(%1, %1) : f32[3,2,2]
%3 = ReduceMean{{axes=(1, 2)}}(%2) : f32[3,1,1]
%4 = Constant{{tensor=f32[1]{{0.5}}}}() : f32[1]
%5 = Add(%4, %3) : f32[3,1,1]
{INVERSE_ROOTS[form]}
output y = {INVERSE_ROOTS[form].rpartition(" = ")[0].split()[-1]}
""",
        """
        input %x: f32[3,2,2] ("n", 2, 2)
        %0 = Constant{tensor=f32[2,2]{1.0, 1.0, 1.0, 1.0}}() : f32[2,2]
        %1 = LayerNormalization{axis=-2, epsilon=0.5}(%x, %0) : f32[3,2,2]
        output y = %1
        """,
    )


FACTORED = """
        input %x: f32[3,2] ("n", 2)
        %0 = ReduceMean{axes=(1)}(%x) : f32[3,1]
        %1 = Sub(%x, %0) : f32[3,2]
        %2 = Mul(%1, %1) : f32[3,2]
        %3 = ReduceMean{axes=(1)}(%2) : f32[3,1]
        %4 = Constant{tensor=f32[]{0.5}}() : f32[]
        %5 = Add(%3, %4) : f32[3,1]
        %6 = Sqrt(%5) : f32[3,1]
        %7 = Reciprocal(%6) : f32[3,1]
        %8 = Constant{tensor=f32[2]{3.0, 4.0}}() : f32[2]
        %9 = Mul(%7, %8) : f32[3,2]
        %10 = Mul(%x, %9) : f32[3,2]
        %11 = Mul(%9, %0) : f32[3,2]
        %12 = Constant{tensor=f32[2]{5.0, 6.0}}() : f32[2]
        %13 = Sub(%12, %11) : f32[3,2]
        %14 = Add(%10, %13) : f32[3,2]
        output y = %14
        """


def test_factored_as_tensorflow_does():
    check_pass(
        recover_layer_normalization,
        FACTORED,
        """
        input %x: f32[3,2] ("n", 2)
        %0 = Constant{tensor=f32[2]{3.0, 4.0}}() : f32[2]
        %1 = Constant{tensor=f32[2]{5.0, 6.0}}() : f32[2]
        %2 = LayerNormalization{epsilon=0.5}(%x, %0, %1) : f32[3,2]
        output y = %2
        """,
    )


@pytest.mark.parametrize(
    ("old", "new"), [("Mul(%x, %9)", "Mul(%2, %9)"), ("Mul(%9, %0)", "Mul(%9, %3)"), ("Mul(%1, %1)", "Mul(%1, %x)")]
)
def test_what_is_only_factored_alike_stays(old, new):
    assert old in FACTORED
    check_unchanged(recover_layer_normalization, FACTORED.replace(old, new))
