"""Passes over convolutions, pooling, products and quantization, before and after."""

from __future__ import annotations

from helpers.graph_text import check_pass, check_unchanged

from glowstone.graph_passes.fold_into_weights import fold_into_weights
from glowstone.graph_passes.fold_padding import fold_padding
from glowstone.graph_passes.fold_transposes_into_weights import fold_transposes_into_weights
from glowstone.graph_passes.merge_products import merge_products
from glowstone.graph_passes.shrink_convolutions import shrink_convolutions
from glowstone.graph_passes.simplify_quantization import simplify_quantization
from glowstone.graph_passes.sink_conversions import sink_conversions


def test_padding_goes_into_the_window():
    check_pass(
        fold_padding,
        """
        input %x: f32[1,1,3,3] ("n", 1, "h", "w")
        input %w: f32[2,1,2,2]
        %0 = Constant{tensor=i64[8]{0, 0, 1, 0, 0, 0, 0, 2}}() : i64[8]
        %1 = Pad(%x, %0) : f32[1,1,4,5]
        %2 = Conv{pads=(0, 1, 0, 0)}(%1, %w) : f32[1,2,3,5]
        %3 = Pad(%x, %0) : f32[1,1,4,5]
        %4 = AveragePool{kernel=(2, 3)}(%3) : f32[1,1,3,3]
        output y = %2
        output z = %4
        """,
        """
        input %x: f32[1,1,3,3] ("n", 1, "h", "w")
        input %w: f32[2,1,2,2]
        %0 = Conv{pads=(1, 1, 0, 2)}(%x, %w) : f32[1,2,3,5]
        %1 = AveragePool{kernel=(2, 3), pads=(1, 0, 0, 2), count_include_pad=True}(%x) : f32[1,1,3,3]
        output y = %0
        output z = %1
        """,
    )


def test_padding_of_channels_with_other_numbers_or_before_a_computed_one_stays():
    check_unchanged(
        fold_padding,
        """
        input %x: f32[1,1,3,3]
        input %w: f32[2,2,2,2]
        input %v: f32[2,1,2,2]
        %0 = Constant{tensor=i64[8]{0, 1, 0, 0, 0, 0, 0, 0}}() : i64[8]
        %1 = Pad(%x, %0) : f32[1,2,3,3]
        %2 = Conv(%1, %w) : f32[1,2,2,2]
        %3 = Constant{tensor=i64[8]{0, 0, 1, 0, 0, 0, 0, 0}}() : i64[8]
        %4 = Constant{tensor=f32[]{1.0}}() : f32[]
        %5 = Pad(%x, %3, %4) : f32[1,1,4,3]
        %6 = Conv(%5, %v) : f32[1,2,3,2]
        %7 = Pad(%x, %3) : f32[1,1,4,3]
        %8 = Conv{padding="same_upper"}(%7, %v) : f32[1,2,4,3]
        output a = %2
        output b = %6
        output c = %8
        """,
    )


def test_rows_that_only_meet_padding_are_cut_off():
    check_pass(
        shrink_convolutions,
        """
        input %x: f32[1,1,1,2]
        %0 = Constant{tensor=f32[1,1,3,2]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}}() : f32[1,1,3,2]
        %1 = Conv{strides=(2, 2), pads=(1, 0, 1, 0)}(%x, %0) : f32[1,1,1,1]
        output y = %1
        """,
        """
        input %x: f32[1,1,1,2]
        %0 = Constant{tensor=f32[1,1,1,2]{3.0, 4.0}}() : f32[1,1,1,2]
        %1 = Conv(%x, %0) : f32[1,1,1,1]
        output y = %1
        """,
    )


def test_weights_that_meet_elements_at_some_shape_stay():
    check_unchanged(
        shrink_convolutions,
        """
        input %x: f32[1,1,1,1] (1, 1, "h", "w")
        input %z: f32[1,1,2,2]
        %0 = Constant{tensor=f32[1,1,1,3]{1.0, 2.0, 3.0}}() : f32[1,1,1,3]
        %1 = Conv{pads=(0, 1, 0, 1)}(%x, %0) : f32[1,1,1,1]
        %2 = Conv{pads=(0, 1, 0, 1)}(%z, %0) : f32[1,1,2,2]
        output y = %1
        output z = %2
        """,
    )


def test_scales_before_and_behind_products():
    check_pass(
        fold_into_weights,
        """
        input %x: f32[2,2]
        %0 = Constant{tensor=f32[2]{2.0, 4.0}}() : f32[2]
        %1 = Mul(%x, %0) : f32[2,2]
        %2 = Constant{tensor=f32[2,3]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}}() : f32[2,3]
        %3 = MatMul(%1, %2) : f32[2,3]
        %4 = Constant{tensor=f32[1,3]{1.0, 10.0, 100.0}}() : f32[1,3]
        %5 = Mul(%3, %4) : f32[2,3]
        output y = %5
        """,
        """
        input %x: f32[2,2]
        %0 = Constant{tensor=f32[2,3]{2.0, 40.0, 600.0, 16.0, 200.0, 2400.0}}() : f32[2,3]
        %1 = MatMul(%x, %0) : f32[2,3]
        output y = %1
        """,
    )


def test_lines_before_convolutions_and_behind_transposed_ones():
    check_pass(
        fold_into_weights,
        """
        input %x: f32[1,2,2,2]
        %0 = Constant{tensor=f32[2,1,1]{2.0, 4.0}}() : f32[2,1,1]
        %1 = Add(%x, %0) : f32[1,2,2,2]
        %2 = Constant{tensor=f32[1,2,1,1]{1.0, 3.0}}() : f32[1,2,1,1]
        %3 = Conv(%1, %2) : f32[1,1,2,2]
        %4 = Constant{tensor=f32[1,2,1,1]{1.0, 3.0}}() : f32[1,2,1,1]
        %5 = ConvTranspose(%3, %4) : f32[1,2,2,2]
        %6 = Mul(%5, %0) : f32[1,2,2,2]
        output y = %6
        """,
        """
        input %x: f32[1,2,2,2]
        %0 = Constant{tensor=f32[1,2,1,1]{1.0, 3.0}}() : f32[1,2,1,1]
        %1 = Constant{tensor=f32[1]{14.0}}() : f32[1]
        %2 = Conv(%x, %0, %1) : f32[1,1,2,2]
        %3 = Constant{tensor=f32[1,2,1,1]{2.0, 12.0}}() : f32[1,2,1,1]
        %4 = Constant{tensor=f32[2]{0.0, 0.0}}() : f32[2]
        %5 = ConvTranspose(%2, %3, %4) : f32[1,2,2,2]
        output y = %5
        """,
    )


def test_offsets_before_padding_and_scales_along_rows_stay():
    check_unchanged(
        fold_into_weights,
        """
        input %x: f32[1,1,2,2]
        input %m: f32[2,2]
        %0 = Constant{tensor=f32[]{2.0}}() : f32[]
        %1 = Add(%x, %0) : f32[1,1,2,2]
        %2 = Constant{tensor=f32[1,1,2,2]{1.0, 2.0, 3.0, 4.0}}() : f32[1,1,2,2]
        %3 = Conv{pads=(1, 0, 0, 0)}(%1, %2) : f32[1,1,2,1]
        %4 = Constant{tensor=f32[2,2]{1.0, 2.0, 3.0, 4.0}}() : f32[2,2]
        %5 = MatMul(%m, %4) : f32[2,2]
        %6 = Constant{tensor=f32[2,1]{1.0, 2.0}}() : f32[2,1]
        %7 = Mul(%5, %6) : f32[2,2]
        output y = %3
        output z = %7
        """,
    )


def test_transpositions_before_flattened_products_order_the_weights():
    check_pass(
        fold_transposes_into_weights,
        """
        input %x: f32[2,2,1,2]
        %0 = Transpose{permutation=(0, 2, 3, 1)}(%x) : f32[2,1,2,2]
        %1 = Flatten(%0) : f32[2,4]
        %2 = Constant{tensor=f32[4,1]{1.0, 2.0, 3.0, 4.0}}() : f32[4,1]
        %3 = MatMul(%1, %2) : f32[2,1]
        output y = %3
        """,
        """
        input %x: f32[2,2,1,2]
        %0 = Constant{tensor=i64[2]{2, 4}}() : i64[2]
        %1 = Reshape(%x, %0) : f32[2,4]
        %2 = Constant{tensor=f32[4,1]{1.0, 3.0, 2.0, 4.0}}() : f32[4,1]
        %3 = MatMul(%1, %2) : f32[2,1]
        output y = %3
        """,
    )


def test_transpositions_of_rows_or_of_extents_that_may_change_stay():
    check_unchanged(
        fold_transposes_into_weights,
        """
        input %x: f32[2,2,2]
        input %d: f32[2,2,2] (2, "h", "w")
        %0 = Constant{tensor=f32[4,1]{1.0, 2.0, 3.0, 4.0}}() : f32[4,1]
        %1 = Transpose{permutation=(1, 0, 2)}(%x) : f32[2,2,2]
        %2 = Flatten(%1) : f32[2,4]
        %3 = MatMul(%2, %0) : f32[2,1]
        %4 = Transpose{permutation=(0, 2, 1)}(%d) : f32[2,2,2]
        %5 = Flatten(%4) : f32[2,4]
        %6 = MatMul(%5, %0) : f32[2,1]
        output y = %3
        output z = %6
        """,
    )


def test_products_of_one_value_become_one():
    check_pass(
        merge_products,
        """
        input %x: f32[1,2] ("n", 2)
        %0 = Constant{tensor=f32[2,1]{1.0, 2.0}}() : f32[2,1]
        %1 = Constant{tensor=f32[2,2]{3.0, 4.0, 5.0, 6.0}}() : f32[2,2]
        %2 = MatMul(%x, %0) : f32[1,1]
        %3 = MatMul(%x, %1) : f32[1,2]
        %4 = Constant{tensor=f32[1]{7.0}}() : f32[1]
        %5 = Constant{tensor=f32[2]{8.0, 9.0}}() : f32[2]
        %6 = Add(%2, %4) : f32[1,1]
        %7 = Add(%5, %3) : f32[1,2]
        output y = %6
        output z = %7
        """,
        """
        input %x: f32[1,2] ("n", 2)
        %0 = Constant{tensor=f32[2,3]{1.0, 3.0, 4.0, 2.0, 5.0, 6.0}}() : f32[2,3]
        %1 = MatMul(%x, %0) : f32[1,3]
        %2 = Constant{tensor=f32[3]{7.0, 8.0, 9.0}}() : f32[3]
        %3 = Add(%1, %2) : f32[1,3]
        %4 = Constant{tensor=i64[1]{0}}() : i64[1]
        %5 = Constant{tensor=i64[1]{1}}() : i64[1]
        %6 = Constant{tensor=i64[1]{1}}() : i64[1]
        %7 = Slice(%3, %4, %5, %6) : f32[1,1]
        %8 = Constant{tensor=i64[1]{1}}() : i64[1]
        %9 = Constant{tensor=i64[1]{3}}() : i64[1]
        %10 = Constant{tensor=i64[1]{1}}() : i64[1]
        %11 = Slice(%3, %8, %9, %10) : f32[1,2]
        output y = %7
        output z = %11
        """,
    )


def test_products_with_one_matrix_become_one_unless_they_need_each_other():
    check_pass(
        merge_products,
        """
        input %x: f32[1,2]
        input %z: f32[1,2]
        %0 = Constant{tensor=f32[2,2]{1.0, 2.0, 3.0, 4.0}}() : f32[2,2]
        %1 = MatMul(%x, %0) : f32[1,2]
        %2 = MatMul(%z, %0) : f32[1,2]
        %3 = Constant{tensor=f32[2,2]{5.0, 6.0, 7.0, 8.0}}() : f32[2,2]
        %4 = MatMul(%1, %3) : f32[1,2]
        %5 = MatMul(%4, %3) : f32[1,2]
        output y = %5
        output z = %2
        """,
        """
        input %x: f32[1,2]
        input %z: f32[1,2]
        %0 = Concat(%x, %z) : f32[2,2]
        %1 = Constant{tensor=f32[2,2]{1.0, 2.0, 3.0, 4.0}}() : f32[2,2]
        %2 = MatMul(%0, %1) : f32[2,2]
        %3 = Constant{tensor=i64[1]{0}}() : i64[1]
        %4 = Constant{tensor=i64[1]{1}}() : i64[1]
        %5 = Constant{tensor=i64[1]{0}}() : i64[1]
        %6 = Slice(%2, %3, %4, %5) : f32[1,2]
        %7 = Constant{tensor=f32[2,2]{5.0, 6.0, 7.0, 8.0}}() : f32[2,2]
        %8 = MatMul(%6, %7) : f32[1,2]
        %9 = MatMul(%8, %7) : f32[1,2]
        %10 = Constant{tensor=i64[1]{1}}() : i64[1]
        %11 = Constant{tensor=i64[1]{2}}() : i64[1]
        %12 = Constant{tensor=i64[1]{0}}() : i64[1]
        %13 = Slice(%2, %10, %11, %12) : f32[1,2]
        output y = %9
        output z = %13
        """,
    )


def test_products_of_many_rows_stay():
    check_unchanged(
        merge_products,
        """
        input %x: f32[5,2]
        %0 = Constant{tensor=f32[2,1]{1.0, 2.0}}() : f32[2,1]
        %1 = Constant{tensor=f32[2,2]{3.0, 4.0, 5.0, 6.0}}() : f32[2,2]
        %2 = MatMul(%x, %0) : f32[5,1]
        %3 = MatMul(%x, %1) : f32[5,2]
        output y = %2
        output z = %3
        """,
    )


def test_conversions_sink_below_joins():
    check_pass(
        sink_conversions,
        """
        input %x: f16[2]
        input %z: f16[3]
        %0 = Cast(%x) : f32[2]
        %1 = Cast(%z) : f32[3]
        %2 = Concat(%0, %1) : f32[5]
        output y = %2
        """,
        """
        input %x: f16[2]
        input %z: f16[3]
        %0 = Concat(%x, %z) : f16[5]
        %1 = Cast(%0) : f32[5]
        output y = %1
        """,
    )


def test_quantization_of_what_was_dequantized():
    check_pass(
        simplify_quantization,
        """
        input %x: u8[3]
        %0 = Constant{tensor=f32[]{0.25}}() : f32[]
        %1 = Constant{tensor=u8[]{7}}() : u8[]
        %2 = DequantizeLinear(%x, %0, %1) : f32[3]
        %3 = QuantizeLinear(%2, %0, %1) : u8[3]
        %4 = Relu(%2) : f32[3]
        %5 = QuantizeLinear(%4, %0) : u8[3]
        output y = %3
        output z = %5
        """,
        """
        input %x: u8[3]
        %0 = Constant{tensor=f32[]{0.25}}() : f32[]
        %1 = Constant{tensor=u8[]{7}}() : u8[]
        %2 = DequantizeLinear(%x, %0, %1) : f32[3]
        %3 = QuantizeLinear(%2, %0) : u8[3]
        output y = %x
        output z = %3
        """,
    )


def test_limits_within_the_range_and_other_scales_stay():
    check_unchanged(
        simplify_quantization,
        """
        input %x: u8[3]
        %0 = Constant{tensor=f32[]{0.25}}() : f32[]
        %1 = Constant{tensor=u8[]{7}}() : u8[]
        %2 = DequantizeLinear(%x, %0, %1) : f32[3]
        %3 = Constant{tensor=f32[]{0.5}}() : f32[]
        %4 = QuantizeLinear(%2, %3, %1) : u8[3]
        %5 = Relu(%2) : f32[3]
        %6 = QuantizeLinear(%5, %0, %1) : u8[3]
        output y = %4
        output z = %6
        """,
    )


def test_joins_are_of_quantized_values():
    check_pass(
        sink_conversions,
        """
        input %x: f32[2]
        input %z: f32[3]
        %0 = Constant{tensor=f32[]{0.25}}() : f32[]
        %1 = Concat(%x, %z) : f32[5]
        %2 = QuantizeLinear(%1, %0) : u8[5]
        output y = %2
        """,
        """
        input %x: f32[2]
        input %z: f32[3]
        %0 = Constant{tensor=f32[]{0.25}}() : f32[]
        %1 = QuantizeLinear(%x, %0) : u8[2]
        %2 = QuantizeLinear(%z, %0) : u8[3]
        %3 = Concat(%1, %2) : u8[5]
        output y = %3
        """,
    )
