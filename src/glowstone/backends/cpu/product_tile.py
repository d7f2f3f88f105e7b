"""The register tile of matrix products: rows times a panel of columns, kept in registers over the whole depth.

In: a target. Out: the width of a panel, in which constant weights are packed too, and the rows of a tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.backends.cpu.target import Target

PANEL_BYTES = 64
"""A panel is one cache line of float32 wide, or two vectors where those are longer than half a line."""
PANEL_VECTORS = 2
MOST_ROWS = 12
SPARE_REGISTERS = 1
"""For the broadcast element of the left matrix; without fused multiply-add one more for the product."""


@dataclass(frozen=True)
class ProductTile:
    """`rows` rows by `vectors` vectors of `lanes` columns."""

    rows: int
    vectors: int
    lanes: int

    @property
    def panel(self) -> int:
        """Columns."""
        return self.vectors * self.lanes

    @staticmethod
    def of(target: Target, panel: int) -> ProductTile:
        """The largest tile of a panel's width that the registers hold."""
        lanes = target.float_lanes
        while panel % lanes:
            lanes //= 2
        vectors = panel // lanes
        spare = SPARE_REGISTERS + (0 if target.has_fma else 1)
        rows = (target.register_count - vectors - spare) // vectors
        return ProductTile(max(1, min(rows, MOST_ROWS)), vectors, lanes)


def panel_width(target: Target) -> int:
    """Columns of a panel of float32 weights."""
    return max(PANEL_BYTES // 4, PANEL_VECTORS * target.float_lanes)
