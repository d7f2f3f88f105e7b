"""Passes over slices, joins, paddings, gathers, tiles and transpositions, before and after."""

from __future__ import annotations

from helpers.graph_text import check_pass, check_unchanged

from glowstone.graph_passes.eliminate_identities import eliminate_identities
from glowstone.graph_passes.merge_concats import merge_concats
from glowstone.graph_passes.merge_pads import merge_pads
from glowstone.graph_passes.merge_slices import merge_slices
from glowstone.graph_passes.replace_gathers import replace_gathers
from glowstone.graph_passes.replace_resizes import replace_resizes
from glowstone.graph_passes.replace_tiles import replace_tiles
from glowstone.graph_passes.replace_transposes import replace_transposes
from glowstone.graph_passes.sink_rearrangements import sink_rearrangements


def test_what_changes_nothing_at_any_shape_goes():
    check_pass(
        eliminate_identities,
        """
        input %x: f32[2,3,4,4] ("n", 3, "h", "w")
        %0 = Constant{tensor=i64[4]{1, 1, 1, 1}}() : i64[4]
        %1 = Tile(%x, %0) : f32[2,3,4,4]
        %2 = Expand(%1, %0) : f32[2,3,4,4]
        %3 = Constant{tensor=i64[8]{0, 0, 0, 0, 0, 0, 0, 0}}() : i64[8]
        %4 = Pad(%2, %3) : f32[2,3,4,4]
        %5 = MaxPool(%4) : f32[2,3,4,4]
        %6 = Constant{tensor=f32[4]{1.0, 1.0, 1.0, 1.0}}() : f32[4]
        %7 = Resize(%5, _, %6) : f32[2,3,4,4]
        %8 = Constant{tensor=i64[1]{0}}() : i64[1]
        %9 = Constant{tensor=i64[1]{9223372036854775807}}() : i64[1]
        %10 = Slice(%7, %8, %9) : f32[2,3,4,4]
        %11 = Unsqueeze{axes=(1)}(%10) : f32[2,1,3,4,4]
        %12 = Squeeze{axes=(1)}(%11) : f32[2,3,4,4]
        %13 = Flatten(%12) : f32[2,48]
        %14 = Shape(%x) : i64[4]
        %15 = Reshape(%13, %14) : f32[2,3,4,4]
        %16 = Exp(%15) : f32[2,3,4,4]
        output y = %16
        """,
        """
        input %x: f32[2,3,4,4] ("n", 3, "h", "w")
        %0 = Exp(%x) : f32[2,3,4,4]
        output y = %0
        """,
    )


def test_what_changes_something_at_another_shape_stays():
    check_unchanged(
        eliminate_identities,
        """
        input %x: f32[2,1,4,4] ("n", 1, "h", "w")
        %0 = Constant{tensor=i64[4]{2, 1, 4, 4}}() : i64[4]
        %1 = Resize(%x, _, _, %0) : f32[2,1,4,4]
        %2 = ReduceMean{axes=(1)}(%1) : f32[2,1,4,4]
        output y = %2
        """,
    )


def test_joins_within_joins_and_parts_put_together():
    check_pass(
        merge_concats,
        """
        input %x: f32[2,6] ("n", 6)
        %0 = Constant{tensor=i64[1]{0}}() : i64[1]
        %1 = Constant{tensor=i64[1]{2}}() : i64[1]
        %2 = Constant{tensor=i64[1]{5}}() : i64[1]
        %3 = Constant{tensor=i64[1]{1}}() : i64[1]
        %4 = Slice(%x, %0, %1, %3) : f32[2,2]
        %5 = Slice(%x, %1, %2, %3) : f32[2,3]
        %6 = Concat{axis=1}(%4, %5) : f32[2,5]
        %7, %8 = Split{axis=-1}(%x) : f32[2,3], f32[2,3]
        %9 = Concat{axis=1}(%7, %8) : f32[2,6]
        %10 = Concat{axis=1}(%6, %x) : f32[2,11]
        %11 = Concat{axis=-1}(%9, %10) : f32[2,17]
        output y = %11
        """,
        """
        input %x: f32[2,6] ("n", 6)
        %0 = Constant{tensor=i64[1]{0}}() : i64[1]
        %1 = Constant{tensor=i64[1]{5}}() : i64[1]
        %2 = Constant{tensor=i64[1]{1}}() : i64[1]
        %3 = Slice(%x, %0, %1, %2) : f32[2,5]
        %4 = Concat{axis=-1}(%x, %3, %x) : f32[2,17]
        output y = %4
        """,
    )


def test_parts_of_a_join_are_its_operands():
    check_pass(
        merge_concats,
        """
        input %x: f32[2,3]
        input %y: f32[2,4]
        %0 = Concat{axis=1}(%x, %y) : f32[2,7]
        %1 = Constant{tensor=i64[1]{3}}() : i64[1]
        %2 = Constant{tensor=i64[1]{7}}() : i64[1]
        %3 = Constant{tensor=i64[1]{1}}() : i64[1]
        %4 = Slice(%0, %1, %2, %3) : f32[2,4]
        %5 = Constant{tensor=i64[2]{3, 4}}() : i64[2]
        %6, %7 = Split{axis=1}(%0, %5) : f32[2,3], f32[2,4]
        output a = %4
        output b = %6
        output c = %7
        """,
        """
        input %x: f32[2,3]
        input %y: f32[2,4]
        output a = %y
        output b = %x
        output c = %y
        """,
    )


def test_parts_out_of_order_or_of_an_axis_that_may_change_stay():
    check_unchanged(
        merge_concats,
        """
        input %x: f32[4,3] ("n", 3)
        input %z: f32[2,3] ("k", 3)
        %0 = Constant{tensor=i64[1]{0}}() : i64[1]
        %1 = Constant{tensor=i64[1]{2}}() : i64[1]
        %2 = Constant{tensor=i64[1]{4}}() : i64[1]
        %3 = Slice(%x, %0, %1) : f32[2,3]
        %4 = Slice(%x, %1, %2) : f32[2,3]
        %5 = Concat(%4, %3) : f32[4,3]
        %6, %7 = Split(%x) : f32[2,3], f32[2,3]
        %8 = Concat(%7, %6) : f32[4,3]
        %9 = Concat(%z, %z) : f32[4,3]
        %10 = Slice(%9, %0, %1) : f32[2,3]
        output a = %5
        output b = %8
        output c = %10
        """,
    )


def test_slices_along_different_axes_join():
    check_pass(
        merge_slices,
        """
        input %x: f32[4,5] ("n", "m")
        %0 = Constant{tensor=i64[1]{1}}() : i64[1]
        %1 = Constant{tensor=i64[1]{-1}}() : i64[1]
        %2 = Slice(%x, %0, %1) : f32[2,5]
        %3 = Constant{tensor=i64[1]{2}}() : i64[1]
        %4 = Slice(%2, %0, %1, %1, %3) : f32[2,2]
        output y = %4
        """,
        """
        input %x: f32[4,5] ("n", "m")
        %0 = Constant{tensor=i64[2]{1, 1}}() : i64[2]
        %1 = Constant{tensor=i64[2]{-1, -1}}() : i64[2]
        %2 = Constant{tensor=i64[2]{0, 1}}() : i64[2]
        %3 = Constant{tensor=i64[2]{1, 2}}() : i64[2]
        %4 = Slice(%x, %0, %1, %2, %3) : f32[2,2]
        output y = %4
        """,
    )


def test_slices_along_one_axis_stay():
    check_unchanged(
        merge_slices,
        """
        input %x: f32[6,5] ("n", "m")
        %0 = Constant{tensor=i64[1]{1}}() : i64[1]
        %1 = Constant{tensor=i64[1]{-1}}() : i64[1]
        %2 = Slice(%x, %0, %1) : f32[4,5]
        %3 = Slice(%2, %0, %1) : f32[2,5]
        output y = %3
        """,
    )


def test_paddings_join():
    check_pass(
        merge_pads,
        """
        input %x: f32[2,3] ("n", "m")
        %0 = Constant{tensor=i64[4]{0, 1, 2, 0}}() : i64[4]
        %1 = Pad(%x, %0) : f32[4,4]
        %2 = Constant{tensor=i64[2]{1, 2}}() : i64[2]
        %3 = Constant{tensor=f32[]{0.0}}() : f32[]
        %4 = Constant{tensor=i64[1]{-1}}() : i64[1]
        %5 = Pad(%1, %2, %3, %4) : f32[4,7]
        output y = %5
        """,
        """
        input %x: f32[2,3] ("n", "m")
        %0 = Constant{tensor=i64[4]{0, 2, 2, 2}}() : i64[4]
        %1 = Constant{tensor=f32[]{0.0}}() : f32[]
        %2 = Pad(%x, %0, %1) : f32[4,7]
        output y = %2
        """,
    )


def test_paddings_of_other_numbers_or_that_take_away_stay():
    check_unchanged(
        merge_pads,
        """
        input %x: f32[3]
        %0 = Constant{tensor=i64[2]{1, 1}}() : i64[2]
        %1 = Pad(%x, %0) : f32[5]
        %2 = Constant{tensor=f32[]{2.0}}() : f32[]
        %3 = Pad(%1, %0, %2) : f32[7]
        %4 = Constant{tensor=i64[2]{-1, 0}}() : i64[2]
        %5 = Pad(%3, %4, %2) : f32[6]
        %6 = Pad{mode="edge"}(%5, %0) : f32[8]
        %7 = Pad{mode="edge"}(%6, %0) : f32[10]
        output y = %7
        """,
    )


def test_gathers_of_neighbours_are_slices():
    check_pass(
        replace_gathers,
        """
        input %x: f32[3,4]
        %0 = Constant{tensor=i64[]{-1}}() : i64[]
        %1 = Gather(%x, %0) : f32[4]
        %2 = Constant{tensor=i32[2]{1, 2}}() : i32[2]
        %3 = Gather{axis=1}(%x, %2) : f32[3,2]
        output y = %1
        output z = %3
        """,
        """
        input %x: f32[3,4]
        %0 = Constant{tensor=i64[1]{2}}() : i64[1]
        %1 = Constant{tensor=i64[1]{3}}() : i64[1]
        %2 = Constant{tensor=i64[1]{0}}() : i64[1]
        %3 = Slice(%x, %0, %1, %2) : f32[1,4]
        %4 = Squeeze{axes=(0)}(%3) : f32[4]
        %5 = Constant{tensor=i64[1]{1}}() : i64[1]
        %6 = Constant{tensor=i64[1]{3}}() : i64[1]
        %7 = Constant{tensor=i64[1]{1}}() : i64[1]
        %8 = Slice(%x, %5, %6, %7) : f32[3,2]
        output y = %4
        output z = %8
        """,
    )


def test_gathers_apart_or_where_the_range_may_change_stay():
    check_unchanged(
        replace_gathers,
        """
        input %x: f32[3,4]
        input %d: f32[3,4] ("n", 4)
        %0 = Constant{tensor=i64[2]{2, 0}}() : i64[2]
        %1 = Gather(%x, %0) : f32[2,4]
        %2 = Constant{tensor=i64[]{1}}() : i64[]
        %3 = Gather(%d, %2) : f32[4]
        output y = %1
        output z = %3
        """,
    )


def test_repeated_single_elements_are_broadcast():
    check_pass(
        replace_tiles,
        """
        input %x: f32[1,4]
        %0 = Constant{tensor=i64[2]{3, 1}}() : i64[2]
        %1 = Tile(%x, %0) : f32[3,4]
        output y = %1
        """,
        """
        input %x: f32[1,4]
        %0 = Constant{tensor=i64[2]{3, 1}}() : i64[2]
        %1 = Constant{tensor=i64[2]{1, 4}}() : i64[2]
        %2 = Mul(%0, %1) : i64[2]
        %3 = Expand(%x, %2) : f32[3,4]
        output y = %3
        """,
    )


def test_repeated_rows_and_dynamic_extents_stay():
    check_unchanged(
        replace_tiles,
        """
        input %x: f32[2,4]
        input %d: f32[1,4] ("n", 4)
        %0 = Constant{tensor=i64[2]{3, 1}}() : i64[2]
        %1 = Tile(%x, %0) : f32[6,4]
        %2 = Tile(%d, %0) : f32[3,4]
        output y = %1
        output z = %2
        """,
    )


def test_transposes_of_single_axes_are_reshapes():
    check_pass(
        replace_transposes,
        """
        input %x: f32[2,1,3]
        %0 = Transpose{permutation=(1, 0, 2)}(%x) : f32[1,2,3]
        output y = %0
        """,
        """
        input %x: f32[2,1,3]
        %0 = Constant{tensor=i64[3]{1, 2, 3}}() : i64[3]
        %1 = Reshape(%x, %0) : f32[1,2,3]
        output y = %1
        """,
    )


def test_transposes_that_move_more_or_may_do_so_stay():
    check_unchanged(
        replace_transposes,
        """
        input %x: f32[2,1,3]
        input %d: f32[2,1,3] (2, "n", 3)
        %0 = Transpose{permutation=(2, 1, 0)}(%x) : f32[3,1,2]
        %1 = Transpose{permutation=(1, 0, 2)}(%d) : f32[1,2,3]
        output y = %0
        output z = %1
        """,
    )


def test_growing_from_one_element_is_broadcasting():
    check_pass(
        replace_resizes,
        """
        input %x: f32[1,2,1,1]
        %0 = Constant{tensor=i64[4]{1, 2, 3, 4}}() : i64[4]
        %1 = Resize{mode="linear"}(%x, _, _, %0) : f32[1,2,3,4]
        output y = %1
        """,
        """
        input %x: f32[1,2,1,1]
        %0 = Constant{tensor=i64[4]{1, 2, 3, 4}}() : i64[4]
        %1 = Expand(%x, %0) : f32[1,2,3,4]
        output y = %1
        """,
    )


def test_growing_from_more_or_from_what_may_be_more_stays():
    check_unchanged(
        replace_resizes,
        """
        input %x: f32[1,2,2,1]
        input %d: f32[1,2,1,1] (1, 2, "h", "w")
        %0 = Constant{tensor=i64[4]{1, 2, 3, 4}}() : i64[4]
        %1 = Resize{mode="linear"}(%x, _, _, %0) : f32[1,2,3,4]
        %2 = Resize{mode="linear"}(%d, _, _, %0) : f32[1,2,3,4]
        output y = %1
        output z = %2
        """,
    )


def test_transpositions_sink_to_their_inverse():
    check_pass(
        sink_rearrangements,
        """
        input %x: f32[1,2,3,3] ("n", 2, "h", "w")
        %0 = Constant{tensor=f32[2,2,1,1]{1.0, 2.0, 3.0, 4.0}}() : f32[2,2,1,1]
        %1 = Conv(%x, %0) : f32[1,2,3,3]
        %2 = Transpose{permutation=(0, 2, 3, 1)}(%1) : f32[1,3,3,2]
        %3 = Constant{tensor=f32[2]{5.0, 6.0}}() : f32[2]
        %4 = Add(%3, %2) : f32[1,3,3,2]
        %5 = Relu(%4) : f32[1,3,3,2]
        output y = %5
        """,
        """
        input %x: f32[1,2,3,3] ("n", 2, "h", "w")
        %0 = Constant{tensor=f32[1,2,1,1]{5.0, 6.0}}() : f32[1,2,1,1]
        %1 = Constant{tensor=f32[2,2,1,1]{1.0, 2.0, 3.0, 4.0}}() : f32[2,2,1,1]
        %2 = Conv(%x, %1) : f32[1,2,3,3]
        %3 = Add(%0, %2) : f32[1,2,3,3]
        %4 = Relu(%3) : f32[1,2,3,3]
        %5 = Transpose{permutation=(0, 2, 3, 1)}(%4) : f32[1,3,3,2]
        output y = %5
        """,
    )


def test_reshapes_sink_below_what_a_product_takes_in():
    check_pass(
        sink_rearrangements,
        """
        input %x: f32[2,3] ("n", 3)
        input %w: f32[3,4]
        %0 = MatMul(%x, %w) : f32[2,4]
        %1 = Constant{tensor=i64[3]{-1, 2, 2}}() : i64[3]
        %2 = Reshape(%0, %1) : f32[2,2,2]
        %3 = Constant{tensor=f32[1]{0.5}}() : f32[1]
        %4 = Mul(%2, %3) : f32[2,2,2]
        output y = %4
        """,
        """
        input %x: f32[2,3] ("n", 3)
        input %w: f32[3,4]
        %0 = MatMul(%x, %w) : f32[2,4]
        %1 = Constant{tensor=f32[]{0.5}}() : f32[]
        %2 = Mul(%0, %1) : f32[2,4]
        %3 = Constant{tensor=i64[3]{-1, 2, 2}}() : i64[3]
        %4 = Reshape(%2, %3) : f32[2,2,2]
        output y = %4
        """,
    )


def test_transpositions_sink_below_joins_and_reductions():
    check_pass(
        sink_rearrangements,
        """
        input %x: f32[1,2,3,3]
        input %z: f32[1,4,3,3]
        %0 = Transpose{permutation=(0, 2, 3, 1)}(%x) : f32[1,3,3,2]
        %1 = Transpose{permutation=(0, 2, 3, 1)}(%z) : f32[1,3,3,4]
        %2 = Concat{axis=3}(%0, %1) : f32[1,3,3,6]
        %3 = Transpose{permutation=(0, 3, 1, 2)}(%2) : f32[1,6,3,3]
        %4 = Transpose{permutation=(0, 2, 3, 1)}(%x) : f32[1,3,3,2]
        %5 = ReduceMean{axes=(1, 2)}(%4) : f32[1,1,1,2]
        output y = %3
        output m = %5
        """,
        """
        input %x: f32[1,2,3,3]
        input %z: f32[1,4,3,3]
        %0 = Concat{axis=1}(%x, %z) : f32[1,6,3,3]
        %1 = Transpose{permutation=(0, 2, 3, 1)}(%0) : f32[1,3,3,6]
        %2 = Transpose{permutation=(0, 3, 1, 2)}(%1) : f32[1,6,3,3]
        %3 = ReduceMean{axes=(2, 3), keep=False}(%x) : f32[1,2]
        %4 = Unsqueeze{axes=(1, 2)}(%3) : f32[1,1,1,2]
        output y = %2
        output m = %4
        """,
    )


def test_rearrangements_stay_where_others_read_them_or_nothing_is_won():
    check_unchanged(
        sink_rearrangements,
        """
        input %x: f32[2,3]
        input %w: f32[3,3]
        %0 = Transpose{permutation=(1, 0)}(%x) : f32[3,2]
        %1 = Relu(%0) : f32[3,2]
        %2 = MatMul(%x, %w) : f32[2,3]
        %3 = Transpose{permutation=(1, 0)}(%2) : f32[3,2]
        %4 = Relu(%3) : f32[3,2]
        %5 = Exp(%3) : f32[3,2]
        output a = %1
        output b = %4
        output c = %5
        """,
    )
