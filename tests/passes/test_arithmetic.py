"""simplify_arithmetic, merge_arithmetic_chains, merge_limits, merge_casts and merge_reductions, before and after."""

from __future__ import annotations

import pytest
from helpers.graph_text import check_pass, check_unchanged

from glowstone.graph_passes.merge_arithmetic_chains import merge_arithmetic_chains
from glowstone.graph_passes.merge_casts import merge_casts
from glowstone.graph_passes.merge_limits import merge_limits
from glowstone.graph_passes.merge_reductions import merge_reductions
from glowstone.graph_passes.simplify_arithmetic import simplify_arithmetic


def test_neutral_numbers_go():
    check_pass(
        simplify_arithmetic,
        """
        input %x: f32[2,3] ("n", 3)
        %0 = Constant{tensor=f32[]{1.0}}() : f32[]
        %1 = Constant{tensor=f32[1,1]{1.0}}() : f32[1,1]
        %2 = Constant{tensor=f32[]{0.0}}() : f32[]
        %3 = Constant{tensor=f32[1]{-0.0}}() : f32[1]
        %4 = Mul(%0, %x) : f32[2,3]
        %5 = Div(%4, %1) : f32[2,3]
        %6 = Sub(%5, %2) : f32[2,3]
        %7 = Add(%3, %6) : f32[2,3]
        %8 = Pow(%7, %0) : f32[2,3]
        %9 = Exp(%8) : f32[2,3]
        output y = %9
        """,
        """
        input %x: f32[2,3] ("n", 3)
        %0 = Exp(%x) : f32[2,3]
        output y = %0
        """,
    )


def test_pairs_signs_and_squares():
    check_pass(
        simplify_arithmetic,
        """
        input %x: f32[2,3]
        input %c: bool[2,3]
        %0 = Neg(%x) : f32[2,3]
        %1 = Neg(%0) : f32[2,3]
        %2 = Add(%1, %0) : f32[2,3]
        %3 = Constant{tensor=i64[]{2}}() : i64[]
        %4 = Pow(%2, %3) : f32[2,3]
        %5 = Constant{tensor=f32[]{-4.0}}() : f32[]
        %6 = Div(%4, %5) : f32[2,3]
        %7 = Not(%c) : bool[2,3]
        %8 = Not(%7) : bool[2,3]
        %9 = Where(%8, %6, %x) : f32[2,3]
        output y = %9
        """,
        """
        input %x: f32[2,3]
        input %c: bool[2,3]
        %0 = Sub(%x, %x) : f32[2,3]
        %1 = Mul(%0, %0) : f32[2,3]
        %2 = Constant{tensor=f32[]{-0.25}}() : f32[]
        %3 = Mul(%1, %2) : f32[2,3]
        %4 = Where(%c, %3, %x) : f32[2,3]
        output y = %4
        """,
    )


def test_a_choice_that_is_made():
    check_pass(
        simplify_arithmetic,
        """
        input %x: f32[2,3]
        input %y: f32[2,3]
        %0 = Constant{tensor=bool[3]{False, False, False}}() : bool[3]
        %1 = Where(%0, %x, %y) : f32[2,3]
        %2 = Maximum(%1, %1) : f32[2,3]
        output y = %2
        """,
        """
        input %x: f32[2,3]
        input %y: f32[2,3]
        output y = %y
        """,
    )


@pytest.mark.parametrize(
    "line",
    [
        "Constant{tensor=f32[]{0.0}}() : f32[]\n%1 = Add(%x, %0) : f32[1,3]",
        "Constant{tensor=f32[]{0.0}}() : f32[]\n%1 = Mul(%x, %0) : f32[1,3]",
        "Constant{tensor=f32[]{-0.0}}() : f32[]\n%1 = Sub(%x, %0) : f32[1,3]",
        "Constant{tensor=f32[]{3.0}}() : f32[]\n%1 = Div(%x, %0) : f32[1,3]",
        "Constant{tensor=f32[1,1,1]{1.0}}() : f32[1,1,1]\n%1 = Mul(%x, %0) : f32[1,1,3]",
        "Constant{tensor=f32[1,3]{1.0, 1.0, 1.0}}() : f32[1,3]\n%1 = Mul(%x, %0) : f32[1,3]",
        "Constant{tensor=f32[]{1.0}}() : f32[]\n%1 = Div(%0, %x) : f32[1,3]",
    ],
)
def test_arithmetic_that_may_change_something_stays(line):
    lines = "\n".join("        " + part for part in line.split("\n"))
    text = f'        input %x: f32[1,3] ("n", "m")\n        %0 = {lines.strip()}\n        output y = %1\n'
    check_unchanged(simplify_arithmetic, text)


def test_chains_of_constants():
    check_pass(
        merge_arithmetic_chains,
        """
        input %x: f32[2,2] ("n", 2)
        %0 = Constant{tensor=f32[2]{2.0, 4.0}}() : f32[2]
        %1 = Constant{tensor=f32[]{3.0}}() : f32[]
        %2 = Constant{tensor=f32[]{0.5}}() : f32[]
        %3 = Constant{tensor=f32[]{0.0}}() : f32[]
        %4 = Mul(%x, %0) : f32[2,2]
        %5 = Mul(%1, %4) : f32[2,2]
        %6 = Add(%5, %1) : f32[2,2]
        %7 = Sub(%6, %2) : f32[2,2]
        %8 = Div(%7, %2) : f32[2,2]
        %9 = Add(%8, %3) : f32[2,2]
        output y = %9
        """,
        """
        input %x: f32[2,2] ("n", 2)
        %0 = Constant{tensor=f32[2]{12.0, 24.0}}() : f32[2]
        %1 = Mul(%x, %0) : f32[2,2]
        %2 = Constant{tensor=f32[]{5.0}}() : f32[]
        %3 = Add(%1, %2) : f32[2,2]
        output y = %3
        """,
    )


def test_sums_with_constants_of_two_values():
    check_pass(
        merge_arithmetic_chains,
        """
        input %x: f32[2,2] ("n", 2)
        input %z: f32[2,2] ("n", 2)
        %0 = Constant{tensor=f32[2]{2.0, 4.0}}() : f32[2]
        %1 = Constant{tensor=f32[2]{1.0, 0.5}}() : f32[2]
        %2 = Add(%x, %0) : f32[2,2]
        %3 = Add(%1, %z) : f32[2,2]
        %4 = Add(%2, %3) : f32[2,2]
        output y = %4
        """,
        """
        input %x: f32[2,2] ("n", 2)
        input %z: f32[2,2] ("n", 2)
        %0 = Constant{tensor=f32[2]{3.0, 4.5}}() : f32[2]
        %1 = Add(%z, %0) : f32[2,2]
        %2 = Add(%1, %x) : f32[2,2]
        output y = %2
        """,
    )


@pytest.mark.parametrize("other", ["%1", "%2"], ids=["read twice", "no constant"])
def test_sums_with_fewer_constants_stay(other):
    check_unchanged(
        merge_arithmetic_chains,
        f"""
        input %x: f32[2,2]
        input %z: f32[2,2]
        %0 = Constant{{tensor=f32[2]{{2.0, 4.0}}}}() : f32[2]
        %1 = Add(%x, %0) : f32[2,2]
        %2 = Abs(%z) : f32[2,2]
        %3 = Add(%1, {other}) : f32[2,2]
        output y = %3
        output z = %2
        """,
    )


def test_chains_that_others_read_or_that_would_grow_stay():
    check_unchanged(
        merge_arithmetic_chains,
        """
        input %x: f32[2,2]
        %0 = Constant{tensor=f32[2]{2.0, 4.0}}() : f32[2]
        %1 = Constant{tensor=f32[2,1]{3.0, 5.0}}() : f32[2,1]
        %2 = Mul(%x, %0) : f32[2,2]
        %3 = Mul(%2, %1) : f32[2,2]
        %4 = Add(%3, %1) : f32[2,2]
        %5 = Add(%4, %1) : f32[2,2]
        output y = %5
        output z = %4
        """,
    )


def test_limits_become_one():
    check_pass(
        merge_limits,
        """
        input %x: f32[4] ("n")
        %0 = Constant{tensor=f32[]{-1.0}}() : f32[]
        %1 = Constant{tensor=f32[1]{6.0}}() : f32[1]
        %2 = Constant{tensor=f32[]{9.0}}() : f32[]
        %3 = Maximum(%0, %x) : f32[4]
        %4 = Minimum(%3, %1) : f32[4]
        %5 = Relu(%4) : f32[4]
        %6 = Clip(%5, _, %2) : f32[4]
        output y = %6
        """,
        """
        input %x: f32[4] ("n")
        %0 = Constant{tensor=f32[]{0.0}}() : f32[]
        %1 = Constant{tensor=f32[]{6.0}}() : f32[]
        %2 = Clip(%x, %0, %1) : f32[4]
        output y = %2
        """,
    )


def test_limits_that_hold_anyway_go():
    check_pass(
        merge_limits,
        """
        input %x: f32[4,2]
        %0 = Constant{tensor=f32[]{0.0}}() : f32[]
        %1 = Constant{tensor=f32[]{1.0}}() : f32[]
        %2 = Sigmoid(%x) : f32[4,2]
        %3 = Transpose{permutation=(1, 0)}(%2) : f32[2,4]
        %4 = Clip(%3, %0, %1) : f32[2,4]
        %5 = Relu(%4) : f32[2,4]
        output y = %5
        """,
        """
        input %x: f32[4,2]
        %0 = Sigmoid(%x) : f32[4,2]
        %1 = Transpose{permutation=(1, 0)}(%0) : f32[2,4]
        output y = %1
        """,
    )


def test_limits_that_are_no_numbers_or_read_by_others_stay():
    check_unchanged(
        merge_limits,
        """
        input %x: f32[4]
        input %low: f32[]
        %0 = Clip(%x, %low) : f32[4]
        %1 = Relu(%0) : f32[4]
        %2 = Constant{tensor=f32[]{2.0}}() : f32[]
        %3 = Minimum(%1, %2) : f32[4]
        %4 = Tanh(%x) : f32[4]
        %5 = Relu(%4) : f32[4]
        output y = %3
        output z = %1
        output t = %5
        """,
    )


def test_conversions_that_lose_nothing_on_the_way():
    check_pass(
        merge_casts,
        """
        input %x: i8[3]
        %0 = Cast{to=i32}(%x) : i32[3]
        %1 = Cast{to=f32}(%0) : f32[3]
        %2 = Cast{to=f64}(%1) : f64[3]
        %3 = Cast{to=i8}(%0) : i8[3]
        output y = %2
        output z = %3
        """,
        """
        input %x: i8[3]
        %0 = Cast{to=f64}(%x) : f64[3]
        output y = %0
        output z = %x
        """,
    )


def test_conversions_that_round_wrap_or_saturate_stay():
    check_unchanged(
        merge_casts,
        """
        input %x: f32[3]
        input %k: i32[3]
        input %n: i8[3]
        %0 = Cast{to=f16}(%x) : f16[3]
        %1 = Cast{to=f32}(%0) : f32[3]
        %2 = Cast{to=f64}(%k) : f64[3]
        %3 = Cast{to=i8}(%2) : i8[3]
        %4 = Cast{to=f32}(%k) : f32[3]
        %5 = Cast{to=f64}(%4) : f64[3]
        %6 = Cast{to=u8}(%n) : u8[3]
        %7 = Cast{to=i32}(%6) : i32[3]
        output a = %1
        output b = %3
        output c = %5
        output d = %7
        """,
    )


def test_reductions_over_neighbouring_axes():
    check_pass(
        merge_reductions,
        """
        input %x: f32[2,3,4,5] ("n", 3, "h", "w")
        %0 = ReduceMean{axes=(3)}(%x) : f32[2,3,4,1]
        %1 = ReduceMean{axes=(-2)}(%0) : f32[2,3,1,1]
        %2 = ReduceMax{axes=(2), keep=False}(%x) : f32[2,3,5]
        %3 = ReduceMax{axes=(2), keep=False}(%2) : f32[2,3]
        output y = %1
        output z = %3
        """,
        """
        input %x: f32[2,3,4,5] ("n", 3, "h", "w")
        %0 = ReduceMean{axes=(2, 3)}(%x) : f32[2,3,1,1]
        %1 = ReduceMax{axes=(2, 3), keep=False}(%x) : f32[2,3]
        output y = %0
        output z = %1
        """,
    )


def test_reductions_of_other_kinds_or_apart_stay():
    check_unchanged(
        merge_reductions,
        """
        input %x: f32[2,3,4]
        %0 = ReduceMean{axes=(2)}(%x) : f32[2,3,1]
        %1 = ReduceSum{axes=(1)}(%0) : f32[2,1,1]
        %2 = ReduceMax{axes=(2)}(%x) : f32[2,3,1]
        %3 = ReduceMax{axes=(0)}(%2) : f32[1,3,1]
        output y = %1
        output z = %3
        """,
    )
