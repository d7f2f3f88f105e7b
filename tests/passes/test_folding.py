"""fold_constants and eliminate_common_subexpressions, before and after."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.graph_text import check_pass, check_unchanged, graph_of

from glowstone.graph import evaluate_graph, rebuild
from glowstone.graph_passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from glowstone.graph_passes.fold_constants import fold_constants
from glowstone.options import Options
from glowstone.support.budget import limited


def test_constants_are_folded_through_chains():
    check_pass(
        fold_constants,
        """
        input %x: f32[2]
        %0 = Constant{tensor=f32[2]{1.0, 2.0}}() : f32[2] "c"
        %1 = Neg(%0) : f32[2] "negation"
        %2 = Exp(%1) : f32[2] "power"
        %3 = Add(%x, %2) : f32[2] "sum"
        output y = %3
        """,
        """
        input %x: f32[2]
        %0 = Constant{tensor=f32[2]{0.3678794503211975, 0.1353352814912796}}() : f32[2] "power"
        %1 = Add(%x, %0) : f32[2] "sum"
        output y = %1
        """,
    )


def test_shapes_that_no_symbol_reaches_are_folded():
    check_pass(
        fold_constants,
        """
        input %x: f32[2,3]
        %0 = Shape(%x) : i64[2]
        %1 = Constant{tensor=i64[]{1}}() : i64[]
        %2 = Gather(%0, %1) : i64[] "extent"
        %3 = Cast(%2) : f32[]
        %4 = Mul(%x, %3) : f32[2,3]
        output y = %4
        output extent = %2
        """,
        """
        input %x: f32[2,3]
        %0 = Constant{tensor=f32[]{3.0}}() : f32[]
        %1 = Mul(%x, %0) : f32[2,3]
        %2 = Constant{tensor=i64[]{3}}() : i64[] "extent"
        output y = %1
        output extent = %2
        """,
    )


def test_dynamic_shapes_stay():
    check_unchanged(
        fold_constants,
        """
        input %x: f32[2,3] ("n", 3)
        %0 = Shape(%x) : i64[2]
        %1 = Constant{tensor=i64[]{0}}() : i64[]
        %2 = Gather(%0, %1) : i64[]
        %3 = Cast(%2) : f32[]
        %4 = Mul(%x, %3) : f32[2,3]
        output y = %4
        """,
    )


def test_what_depends_on_data_stays():
    check_unchanged(
        fold_constants,
        """
        input %x: f32[2,3]
        %0 = Constant{tensor=f32[]{2.0}}() : f32[]
        %1 = Mul(%x, %0) : f32[2,3]
        %2 = Exp(%1) : f32[2,3]
        output y = %2
        """,
    )


def test_broadcast_results_stay_symbolic():
    graph = graph_of(
        """
        %0 = Constant{tensor=i64[2]{1000, 1000}}() : i64[2]
        %1 = ConstantOfShape{value=0.5}(%0) : f32[1000,1000]
        output y = %1
        """
    )
    assert fold_constants(graph)
    (node,) = graph.nodes
    assert node.operator.attributes()["tensor"].is_splat


def test_large_results_are_left_to_run_time():
    text = """
        %0 = Constant{tensor=f32[100]{splat 1.0}}() : f32[100]
        %1 = Constant{tensor=f32[100,1]{splat 2.0}}() : f32[100,1]
        %2 = Add(%0, %1) : f32[100,100]
        output y = %2
        """
    with limited(Options(fold_value_limit=39_999)):
        check_unchanged(fold_constants, text)
    with limited(Options(fold_limit=39_999)):
        check_unchanged(fold_constants, text)
    with limited(Options(fold_value_limit=40_000, fold_limit=40_000)):
        assert fold_constants(graph_of(text))
        assert not fold_constants(graph_of(text))


def test_a_result_no_larger_than_its_operands_is_folded_whatever_its_size():
    before = """
        %0 = Constant{tensor=i64[2,3]{1, 2, 3, 4, 5, 6}}() : i64[2,3]
        %1 = Transpose{permutation=(1, 0)}(%0) : i64[3,2]
        output y = %1
        """
    after = """
        %0 = Constant{tensor=i64[3,2]{1, 4, 2, 5, 3, 6}}() : i64[3,2]
        output y = %0
        """
    with limited(Options(fold_value_limit=10)):
        check_pass(fold_constants, before, after)


def test_a_repeated_element_counts_once():
    text = """
        %0 = Constant{tensor=f32[40,40]{splat 1.0}}() : f32[40,40]
        %1 = Add(%0, %0) : f32[40,40]
        output y = %1
        """
    with limited(Options(fold_value_limit=10)):
        check_unchanged(fold_constants, text)


@pytest.mark.parametrize("extent", [1, 5])
def test_a_folded_template_holds_for_other_shapes(extent):
    graph = graph_of(
        """
        input %x: f32[2,3] ("n", 3)
        %0 = Constant{tensor=i64[1]{-1}}() : i64[1]
        %1 = Shape{end=1}(%x) : i64[1]
        %2 = Concat(%1, %0) : i64[2]
        %3 = Constant{tensor=f32[3]{1.0, 2.0, 3.0}}() : f32[3]
        %4 = Neg(%3) : f32[3]
        %5 = Add(%x, %4) : f32[2,3]
        %6 = Reshape(%5, %2) : f32[2,3]
        output y = %6
        """
    )
    assert fold_constants(graph)
    x = np.ones((extent, 3), np.float32)
    found = evaluate_graph(rebuild(graph, {"x": x.shape}), {"x": x})["y"]
    np.testing.assert_array_equal(found, x - np.array([1, 2, 3], np.float32))


def test_equal_nodes_become_one():
    check_pass(
        eliminate_common_subexpressions,
        """
        input %x: f32[2]
        input %y: f32[2]
        %0 = Add(%x, %y) : f32[2] "first"
        %1 = Add(%y, %x) : f32[2] "swapped"
        %2 = Exp(%0) : f32[2]
        %3 = Exp(%1) : f32[2]
        %4 = Sub(%2, %3) : f32[2]
        output z = %4
        output w = %3
        """,
        """
        input %x: f32[2]
        input %y: f32[2]
        %0 = Add(%x, %y) : f32[2] "first"
        %1 = Exp(%0) : f32[2]
        %2 = Sub(%1, %1) : f32[2]
        output z = %2
        output w = %1
        """,
    )


def test_equal_constants_become_one():
    check_pass(
        eliminate_common_subexpressions,
        """
        input %x: f32[1]
        %0 = Constant{tensor=f32[1]{0.0}}() : f32[1]
        %1 = Add(%x, %0) : f32[1]
        %2 = Constant{tensor=f32[1]{0.0}}() : f32[1]
        %3 = Mul(%1, %2) : f32[1]
        output y = %3
        """,
        """
        input %x: f32[1]
        %0 = Constant{tensor=f32[1]{0.0}}() : f32[1]
        %1 = Add(%x, %0) : f32[1]
        %2 = Mul(%1, %0) : f32[1]
        output y = %2
        """,
    )


def test_nodes_that_differ_stay():
    check_unchanged(
        eliminate_common_subexpressions,
        """
        input %x: f32[2]
        input %y: f32[2]
        %0 = Constant{tensor=f32[1]{0.0}}() : f32[1]
        %1 = Constant{tensor=f32[1]{-0.0}}() : f32[1]
        %2 = Constant{tensor=f32[]{0.0}}() : f32[]
        %3 = Sub(%x, %y) : f32[2]
        %4 = Sub(%y, %x) : f32[2]
        %5 = LeakyRelu(%x) : f32[2]
        %6 = LeakyRelu{alpha=0.5}(%x) : f32[2]
        %7 = Shape(%x) : i64[1]
        %8 = ConstantOfShape(%7) : f32[2]
        %9 = ConstantOfShape{value=-0.0}(%7) : f32[2]
        output a = %0
        output b = %1
        output c = %2
        output d = %3
        output e = %4
        output f = %5
        output g = %6
        output h = %8
        output i = %9
        """,
    )
