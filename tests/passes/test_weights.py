"""fold_into_weights, before and after."""

from __future__ import annotations

from helpers.graph_text import check_pass, check_unchanged

from glowstone.graph_passes.fold_into_weights import fold_into_weights


def test_batch_normalization_goes_into_the_weights():
    check_pass(
        fold_into_weights,
        """
        input %x: f32[1,1,2,2] (1, 1, "h", "w")
        %0 = Constant{tensor=f32[2,1,1,1]{1.0, 2.0}}() : f32[2,1,1,1]
        %1 = Conv(%x, %0) : f32[1,2,2,2] "conv"
        %2 = Constant{tensor=f32[2]{3.0, 4.0}}() : f32[2]
        %3 = Constant{tensor=f32[2]{0.5, -0.5}}() : f32[2]
        %4 = Constant{tensor=f32[2]{1.0, 2.0}}() : f32[2]
        %5 = Constant{tensor=f32[2]{3.0, 0.0}}() : f32[2]
        %6 = BatchNormalization{epsilon=1.0}(%1, %2, %3, %4, %5) : f32[1,2,2,2] "norm"
        output y = %6
        """,
        """
        input %x: f32[1,1,2,2] (1, 1, "h", "w")
        %0 = Constant{tensor=f32[2,1,1,1]{1.5, 8.0}}() : f32[2,1,1,1] "norm"
        %1 = Constant{tensor=f32[2]{-1.0, -8.5}}() : f32[2] "norm"
        %2 = Conv(%x, %0, %1) : f32[1,2,2,2] "norm"
        output y = %2
        """,
    )


def test_scales_and_offsets_per_channel_go_into_the_weights():
    check_pass(
        fold_into_weights,
        """
        input %x: f32[1,2,2,2]
        %0 = Constant{tensor=f32[]{2.0}}() : f32[]
        %1 = Constant{tensor=f32[2,1,1,1]{1.0, 2.0}}() : f32[2,1,1,1]
        %2 = Constant{tensor=f32[2]{1.0, -1.0}}() : f32[2]
        %3 = Conv{groups=2}(%x, %1, %2) : f32[1,2,2,2]
        %4 = Constant{tensor=f32[2,1,1]{0.5, 1.0}}() : f32[2,1,1]
        %5 = Mul(%4, %3) : f32[1,2,2,2]
        %6 = Constant{tensor=f32[1,2,1,1]{1.0, 2.0}}() : f32[1,2,1,1]
        %7 = Add(%5, %6) : f32[1,2,2,2]
        %8 = Sub(%7, %0) : f32[1,2,2,2]
        output y = %8
        """,
        """
        input %x: f32[1,2,2,2]
        %0 = Constant{tensor=f32[2,1,1,1]{0.5, 2.0}}() : f32[2,1,1,1]
        %1 = Constant{tensor=f32[2]{-0.5, -1.0}}() : f32[2]
        %2 = Conv{groups=2}(%x, %0, %1) : f32[1,2,2,2]
        output y = %2
        """,
    )


def test_a_convolution_that_is_an_output_stays():
    check_unchanged(
        fold_into_weights,
        """
        input %x: f32[1,1,2,2]
        %0 = Constant{tensor=f32[2,1,1,1]{1.0, 2.0}}() : f32[2,1,1,1]
        %1 = Conv(%x, %0) : f32[1,2,2,2]
        %2 = Constant{tensor=f32[]{2.0}}() : f32[]
        %3 = Mul(%1, %2) : f32[1,2,2,2]
        output y = %3
        output z = %1
        """,
    )


def test_a_convolution_that_others_read_stays():
    check_unchanged(
        fold_into_weights,
        """
        input %x: f32[1,1,2,2]
        %0 = Constant{tensor=f32[2,1,1,1]{1.0, 2.0}}() : f32[2,1,1,1]
        %1 = Conv(%x, %0) : f32[1,2,2,2]
        %2 = Constant{tensor=f32[]{2.0}}() : f32[]
        %3 = Mul(%1, %2) : f32[1,2,2,2]
        %4 = Exp(%1) : f32[1,2,2,2]
        output y = %3
        output z = %4
        """,
    )


def test_what_is_not_per_channel_or_not_constant_stays():
    check_unchanged(
        fold_into_weights,
        """
        input %x: f32[1,1,2,2]
        input %w: f32[2,1,1,1]
        input %s: f32[2,1,1]
        %0 = Constant{tensor=f32[2,1,1,1]{1.0, 2.0}}() : f32[2,1,1,1]
        %1 = Conv(%x, %0) : f32[1,2,2,2]
        %2 = Constant{tensor=f32[2]{1.0, 2.0}}() : f32[2]
        %3 = Mul(%1, %2) : f32[1,2,2,2]
        %4 = Conv(%x, %0) : f32[1,2,2,2]
        %5 = Mul(%4, %s) : f32[1,2,2,2]
        %6 = Constant{tensor=f32[]{2.0}}() : f32[]
        %7 = Conv(%x, %w) : f32[1,2,2,2]
        %8 = Add(%7, %6) : f32[1,2,2,2]
        %9 = Conv(%x, %0) : f32[1,2,2,2]
        %10 = Sub(%6, %9) : f32[1,2,2,2]
        output along_rows = %3
        output scale_of_data = %5
        output weights_of_data = %8
        output reversed_difference = %10
        """,
    )
