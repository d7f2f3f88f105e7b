"""eliminate_identities and merge_rearrangements, before and after."""

from __future__ import annotations

import pytest
from helpers.graph_text import check_pass, check_unchanged

from glowstone.graph_passes.eliminate_identities import eliminate_identities
from glowstone.graph_passes.merge_rearrangements import merge_rearrangements


def test_operators_that_change_nothing_go():
    check_pass(
        eliminate_identities,
        """
        input %x: f32[2,3]
        %0 = Identity(%x) : f32[2,3]
        %1 = Cast(%0) : f32[2,3]
        %2 = Transpose{permutation=(0, 1)}(%1) : f32[2,3]
        %3 = Constant{tensor=i64[2]{2, 3}}() : i64[2]
        %4 = Reshape(%2, %3) : f32[2,3]
        %5 = Expand(%4, %3) : f32[2,3]
        %6 = Constant{tensor=i64[1]{0}}() : i64[1]
        %7 = Constant{tensor=i64[1]{9}}() : i64[1]
        %8 = Slice(%5, %6, %7) : f32[2,3]
        %9 = Exp(%8) : f32[2,3]
        output y = %9
        """,
        """
        input %x: f32[2,3]
        %0 = Exp(%x) : f32[2,3]
        output y = %0
        """,
    )


def test_an_output_may_become_an_input():
    check_pass(
        eliminate_identities,
        """
        input %x: f32[2]
        %0 = Identity(%x) : f32[2]
        output y = %0
        output z = %0
        """,
        """
        input %x: f32[2]
        output y = %x
        output z = %x
        """,
    )


def test_operators_that_change_something_stay():
    check_unchanged(
        eliminate_identities,
        """
        input %x: f32[3,3]
        %0 = Transpose{permutation=(1, 0)}(%x) : f32[3,3]
        %1 = Cast{to=f64}(%0) : f64[3,3]
        %2 = Constant{tensor=i64[1]{-1}}() : i64[1]
        %3 = Constant{tensor=i64[1]{-9}}() : i64[1]
        %4 = Constant{tensor=i64[1]{0}}() : i64[1]
        %5 = Slice(%1, %2, %3, %4, %2) : f64[3,3]
        %6 = Constant{tensor=i64[2]{1, -1}}() : i64[2]
        %7 = Reshape(%5, %6) : f64[1,9]
        output y = %7
        """,
    )


@pytest.mark.parametrize("kind", ["Reshape", "Expand"])
def test_what_keeps_a_dynamic_shape_by_coincidence_stays(kind):
    check_unchanged(
        eliminate_identities,
        f"""
        input %x: f32[2,3] ("n", 3)
        %0 = Constant{{tensor=i64[2]{{2, 3}}}}() : i64[2]
        %1 = {kind}(%x, %0) : f32[2,3]
        output y = %1
        """,
    )


def test_a_slice_that_keeps_all_of_a_dynamic_axis_by_coincidence_stays():
    check_unchanged(
        eliminate_identities,
        """
        input %x: f32[2,3] ("n", 3)
        %0 = Constant{tensor=i64[1]{0}}() : i64[1]
        %1 = Constant{tensor=i64[1]{2}}() : i64[1]
        %2 = Slice(%x, %0, %1) : f32[2,3]
        output y = %2
        """,
    )


def test_transposes_join():
    check_pass(
        merge_rearrangements,
        """
        input %x: f32[2,3,4] ("n", 3, 4)
        %0 = Transpose{permutation=(1, 2, 0)}(%x) : f32[3,4,2]
        %1 = Transpose{permutation=(1, 0, 2)}(%0) : f32[4,3,2]
        %2 = Transpose{permutation=(0, 2, 1)}(%1) : f32[4,2,3]
        output y = %2
        """,
        """
        input %x: f32[2,3,4] ("n", 3, 4)
        %0 = Transpose{permutation=(2, 0, 1)}(%x) : f32[4,2,3]
        output y = %0
        """,
    )


def test_a_transpose_that_others_read_stays():
    check_pass(
        merge_rearrangements,
        """
        input %x: f32[2,3]
        %0 = Transpose{permutation=(1, 0)}(%x) : f32[3,2]
        %1 = Transpose{permutation=(1, 0)}(%0) : f32[2,3]
        output y = %0
        output z = %1
        """,
        """
        input %x: f32[2,3]
        %0 = Transpose{permutation=(1, 0)}(%x) : f32[3,2]
        %1 = Transpose{permutation=(0, 1)}(%x) : f32[2,3]
        output y = %0
        output z = %1
        """,
    )


def test_reshapes_join():
    check_pass(
        merge_rearrangements,
        """
        input %x: f32[2,3,1] ("n", 3, 1)
        %0 = Squeeze{axes=(2)}(%x) : f32[2,3]
        %1 = Flatten(%0) : f32[2,3]
        %2 = Unsqueeze(%1) : f32[1,2,3]
        %3 = Constant{tensor=i64[2]{3, -1}}() : i64[2]
        %4 = Reshape(%2, %3) : f32[3,2]
        output y = %4
        """,
        """
        input %x: f32[2,3,1] ("n", 3, 1)
        %0 = Constant{tensor=i64[2]{3, -1}}() : i64[2]
        %1 = Reshape(%x, %0) : f32[3,2]
        output y = %1
        """,
    )


def test_reshapes_that_refer_to_what_is_between_stay():
    check_unchanged(
        merge_rearrangements,
        """
        input %x: f32[6,2] ("n", 2)
        %0 = Constant{tensor=i64[3]{-1, 2, 2}}() : i64[3]
        %1 = Reshape(%x, %0) : f32[3,2,2]
        %2 = Constant{tensor=i64[2]{0, 4}}() : i64[2]
        %3 = Reshape(%1, %2) : f32[3,4]
        %4 = Shape(%3) : i64[2]
        %5 = Squeeze(%3) : f32[3,4]
        %6 = Reshape(%5, %4) : f32[3,4]
        output y = %6
        """,
    )
