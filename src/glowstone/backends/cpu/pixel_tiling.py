"""How the pixels of an output are cut: balanced tiles, chunks of tiles, units of work.

A tile is what one pass over the reduction computes, a chunk is what shares a pixel table, a unit is one chunk for a
span of weight panels. A long reduction is cut in slices, each done for all tiles of the chunk before the next, with
partial sums in scratch: meanwhile the weights of the next slice arrive. All follow from extents and the target, and
reach the kernel as derived integers.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

SPAN_BYTES = 160 * 1024
"""Weights of the panels that one unit goes through: they should stay in the second-level cache from unit to unit."""
SLICE_BYTES = 64 * 1024
"""Weights of one slice of the reduction: this slice and the next, prefetched, should stay there too."""
MOST_TERMS = 256
"""Products summed in one chain: a slice is summed by itself, so that long reductions round less."""
CHUNK_BYTES = 256 * 1024
"""Inputs of one chunk, likewise."""
HEAVY_BYTES = 1024 * 1024
"""Weights beyond this size are read from memory for every chunk: then chunks may be larger."""
HEAVY_CHUNK_BYTES = 1024 * 1024
ENTRY_BYTES = 8
"""Of one entry of the pixel table."""
TABLE_BYTES = 48 * 1024
FEWEST_UNITS = 16
"""Spans shrink until a call has so many units (if it has so many panels)."""
FEWEST_CHUNK_TILES = 8


@dataclass(frozen=True)
class Reduction:
    """What is summed for every output: input blocks, the weights of one of them in one panel in bytes, its products."""

    blocks: int
    block_bytes: int
    block_terms: int


@dataclass(frozen=True)
class Tiling:
    """The derived integers, in the order of the call."""

    tiles: int
    pixels: int
    """Pixels of a tile."""
    longer: int
    """So many tiles at the front have one pixel more."""
    chunk: int
    """Tiles of a chunk."""
    chunks: int
    span: int
    """Panels of a unit."""
    capacity: int
    """Most pixels in a chunk."""
    slice: int
    """Input blocks of a slice of the reduction."""
    slices: int

    @property
    def derived(self) -> tuple[int, ...]:
        return astuple(self)


TILING_COUNT = len(fields(Tiling))


def smallest_full_tile(most: int) -> int:
    """Balanced tiles have from this many pixels up to `most`, unless all pixels together are fewer."""
    return (most + 1) // 2


def plan_tiling(pixels: int, most: int, panels: int, reduction: Reduction, pixel_bytes: int, rows: int) -> Tiling:
    """Cut `pixels` output pixels.

    Args:
        pixels: all output pixels.
        most: pixels that fit the register tile.
        panels: weight panels.
        reduction: what is summed.
        pixel_bytes: input bytes that one more output pixel touches.
        rows: rows of the pixel table.
    """
    tiles = -(-pixels // most) if pixels >= smallest_full_tile(most) else pixels
    size, longer = divmod(pixels, tiles) if tiles else (0, 0)
    panel_bytes = max(1, reduction.blocks * reduction.block_bytes)
    chunk = max(FEWEST_CHUNK_TILES, _chunk_pixels(panels * panel_bytes, pixel_bytes, rows) // most)
    if panels * panel_bytes <= SPAN_BYTES:  # units of all panels, then: many chunks
        chunk = min(chunk, max(FEWEST_CHUNK_TILES, -(-tiles // FEWEST_UNITS)))
    chunks = max(1, -(-tiles // chunk))
    chunk = -(-tiles // chunks)
    most_panels = min(panels, SPAN_BYTES // panel_bytes, -(-panels * chunks // FEWEST_UNITS))
    spans = -(-panels // max(1, most_panels))
    span = -(-panels // max(1, spans))
    slices = max(1, -(-panel_bytes // SLICE_BYTES), -(-reduction.blocks * reduction.block_terms // MOST_TERMS))
    slice_blocks = max(1, -(-reduction.blocks // slices))
    return Tiling(
        tiles=tiles,
        pixels=size,
        longer=longer,
        chunk=chunk,
        chunks=chunks,
        span=span,
        capacity=chunk * (size + (longer > 0)),
        slice=slice_blocks,
        slices=max(1, -(-reduction.blocks // slice_blocks)),
    )


def _chunk_pixels(weight_bytes: int, pixel_bytes: int, rows: int) -> int:
    """Most pixels in a chunk."""
    chunk_bytes = HEAVY_CHUNK_BYTES if weight_bytes > HEAVY_BYTES else CHUNK_BYTES
    return min(chunk_bytes // max(pixel_bytes, 1), TABLE_BYTES // (ENTRY_BYTES * rows))


def table_bytes(taps: int, own_extras: int, pixels: int) -> int:
    """Memory that a pixel table takes."""
    return (1 + own_extras + taps) * pixels * ENTRY_BYTES


def tile_sizes(most: int) -> list[int]:
    """Every number of pixels that a balanced tile can have."""
    return sorted({1, *range(smallest_full_tile(most), most + 1)})
