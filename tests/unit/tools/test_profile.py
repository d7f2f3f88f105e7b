"""Profiles: what is counted, against arithmetic on paper."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models import save_convolution_chain, save_matrix_product

import glowstone
from glowstone.tools.profile import InstructionProfile, Limits, Profile, measure_limits, profile_model


def test_products_of_a_matrix_product_and_its_bytes(tmp_path):
    model = glowstone.compile(save_matrix_product(tmp_path / "product.onnx", 7, 32, 48))
    (one,) = profile_model(model, {"x": np.ones((7, 32), np.float32)}, runs=1)
    assert one.flops == 2 * 7 * 32 * 48
    assert one.moved == 4 * (7 * 32 + 32 * 48 + 7 * 48)
    assert one.nanoseconds > 0
    assert "rows x" in one.tile


@pytest.mark.parametrize("extent", [8, 56])
def test_products_of_a_convolution_do_not_depend_on_its_algorithm(tmp_path, extent):
    """Channels fill whole blocks, so that no lane of padding is counted."""
    model = glowstone.compile(save_convolution_chain(tmp_path / "chain.onnx", 1, 64, extent))
    profiles = profile_model(model, {"x": np.ones((1, 64, extent, extent), np.float32)}, runs=1)
    assert sum(one.flops for one in profiles) == 2 * 9 * 64 * 64 * extent * extent


def test_the_share_is_that_of_the_limit_that_is_nearer():
    one = InstructionProfile(0, "a", "MatMul", "MatMul", "", nanoseconds=100.0, flops=5000, moved=300)
    assert one.flops_rate == 50
    assert one.byte_rate == 3
    assert one.share(Limits(flops=100.0, bytes=30.0)) == 0.5
    assert one.share(Limits(flops=1000.0, bytes=6.0)) == 0.5
    content = Profile([one], Limits(100.0, 30.0)).as_dict()
    assert content["instructions"][0]["share_of_limit"] == 0.5
    assert content["limits"] == {"gflop_per_s": 100.0, "gb_per_s": 30.0}


def test_limits_are_those_of_a_processor(tmp_path):
    model = glowstone.compile(save_matrix_product(tmp_path / "product.onnx", 1, 16, 16))
    limits = measure_limits(model.target)
    assert limits.flops > 1.0
    assert limits.bytes > 0.1
