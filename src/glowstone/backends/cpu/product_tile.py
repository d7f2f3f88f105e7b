"""The register tile of matrix products: rows times a panel of columns, kept in registers over the whole depth.

In: a target. Out: the width of a panel, in which constant weights are packed too, the rows of a tile, and the division
of rows and panels into units.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.backends.cpu.target import Target

PANEL_VECTORS = 2
LINE_FLOATS = 16
FEW_REGISTERS = 16
MOST_ROWS = 8
"""More rows save no time."""
SPARE_REGISTERS = 1
"""For the broadcast element of the left matrix; without fused multiply-add one more for the product."""
UNIT_NANOSECONDS = 20_000
FEWEST_TILES = 16
"""Row tiles of a unit, where there are so many rows: a panel of weights is then read for enough work."""


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

    @property
    def tail_rows(self) -> tuple[int, ...]:
        """Numbers of rows in which what a whole tile leaves is taken: powers of two, falling."""
        return tuple(1 << exponent for exponent in reversed(range((self.rows - 1).bit_length())))

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
    """Columns of a panel of float32 weights: two vectors, or a cache line where there are registers for it."""
    if target.register_count <= FEW_REGISTERS:
        return PANEL_VECTORS * target.float_lanes
    return max(LINE_FLOATS, PANEL_VECTORS * target.float_lanes)


@dataclass(frozen=True)
class ProductDivision:
    """How rows and panels of columns are divided into units."""

    rows_per_unit: int
    panels_per_unit: int
    row_chunks: int
    panel_groups: int

    @staticmethod
    def of(rows: int, panels: int, tile: ProductTile, nanoseconds_per_row: float) -> ProductDivision:
        """Units of about `UNIT_NANOSECONDS`; `nanoseconds_per_row` is the time for one row of one panel.

        They are as wide as can be, so that lines and pages of results are written in one go.
        """
        wanted = max(1, int(UNIT_NANOSECONDS / nanoseconds_per_row))
        most = max(FEWEST_TILES * tile.rows, wanted // panels)
        row_chunks = 1 if rows < 2 * most else -(-rows // most)
        rows_per_unit = min(rows, -(-rows // (row_chunks * tile.rows)) * tile.rows)
        panels_per_unit = max(1, min(panels, wanted // rows_per_unit))
        return ProductDivision(rows_per_unit, panels_per_unit, -(-rows // rows_per_unit), -(-panels // panels_per_unit))

    @property
    def units(self) -> int:
        return self.row_chunks * self.panel_groups
