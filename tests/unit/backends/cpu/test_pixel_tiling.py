"""Tilings cover every pixel, panel and input block exactly once, whatever the extents."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from glowstone.backends.cpu.claims import CLAIM_NANOSECONDS, claim_grain
from glowstone.backends.cpu.pixel_tiling import (
    FEWEST_CHUNK_TILES,
    SLICE_BYTES,
    Reduction,
    plan_tiling,
    tile_sizes,
)
from glowstone.backends.cpu.register_tile import blocks_per_panel, grouped_blocks_per_panel, pixels_per_tile
from glowstone.backends.cpu.target import Target

TARGETS = [Target.parse(f"x86_64-unknown-linux-gnu/x86-64-v{level}") for level in (2, 3, 4)]


@settings(max_examples=300, deadline=None)
@given(
    pixels=st.integers(0, 20_000),
    most=st.integers(1, 8),
    panels=st.integers(1, 200),
    blocks=st.integers(0, 300),
    taps=st.sampled_from([1, 3, 9, 25, 49]),
    stride=st.integers(1, 4),
)
def test_everything_once(pixels, most, panels, blocks, taps, stride):
    reduction = Reduction(blocks, 512 * taps, 8 * taps)
    tiling = plan_tiling(pixels, most, panels, reduction, blocks * 32 * stride, rows=taps + 1)
    sizes = [tiling.pixels + (number < tiling.longer) for number in range(tiling.tiles)]
    assert sum(sizes) == pixels
    assert set(sizes) <= set(tile_sizes(most))
    assert tiling.chunks * tiling.chunk >= tiling.tiles
    assert sum(sorted(sizes)[-tiling.chunk :] if tiling.chunk else []) <= tiling.capacity
    assert 1 <= tiling.span <= panels
    assert (tiling.slices - 1) * tiling.slice < max(blocks, 1) <= tiling.slices * tiling.slice
    assert tiling.slice == 1 or (tiling.slice - 1) * reduction.block_bytes < SLICE_BYTES
    assert tiling.chunks == 1 or tiling.chunk >= FEWEST_CHUNK_TILES // 2


@given(st.integers(0, 5000), st.integers(0, 10**9))
def test_claims(units, cost):
    grain = claim_grain(units, cost)
    assert 1 <= grain <= max(units, 1)
    assert grain == 1 or grain * cost <= units * CLAIM_NANOSECONDS


@given(st.sampled_from(TARGETS), st.integers(1, 64))
def test_register_tiles_fit_the_registers(target, blocks):
    panel = blocks_per_panel(target, blocks)
    assert panel * pixels_per_tile(target, panel) + panel + 1 <= target.block_registers
    assert panel <= blocks
    assert blocks % grouped_blocks_per_panel(target, blocks) == 0
