"""Products with packed weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.operations import PackedMatMul
from glowstone.backends.cpu.product_tile import ProductTile
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

UNIT_NANOSECONDS = 20_000
FEWEST_TILES = 16
"""Row tiles of a unit, where there are so many rows: a panel of weights is then read for enough work."""


@dataclass(frozen=True)
class ProductDivision:
    """How rows and panels of columns are divided into units."""

    rows_per_unit: int
    panels_per_unit: int
    row_chunks: int
    panel_groups: int

    @staticmethod
    def of(rows: int, panels: int, tile: ProductTile, nanoseconds_per_row: float) -> ProductDivision:
        """Units of about `UNIT_NANOSECONDS`; `nanoseconds_per_row` is the time for one row of one panel."""
        wanted = max(1, int(UNIT_NANOSECONDS / nanoseconds_per_row))
        rows_per_unit = min(rows, max(FEWEST_TILES, wanted // tile.rows) * tile.rows)
        panels_per_unit = max(1, min(panels, wanted // rows_per_unit))
        return ProductDivision(rows_per_unit, panels_per_unit, -(-rows // rows_per_unit), -(-panels // panels_per_unit))

    @property
    def units(self) -> int:
        return self.row_chunks * self.panel_groups


@emits(PackedMatMul)
class PackedMatMulKernels(KernelFamily):
    """Keyed by the width of a panel."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        assert isinstance(instruction.operation, PackedMatMul)
        y, a, b, *extras = instruction.operands
        rows, columns = y.shape
        depth, panel = a.shape[1], b.shape[2]
        key = KernelKey.of(instruction, (panel,))
        if y.size == 0:
            return KernelCall(key, 0)
        flops = 2 * depth + expression_flops(instruction.operation.epilogue)
        moved = 4 * (b.size + a.size + y.size * (1 + len(extras)))
        cost = target.cost(flops * y.size, moved)
        division = ProductDivision.of(rows, b.shape[0], ProductTile.of(target, panel), cost / (rows * b.shape[0]))
        derived = (division.rows_per_unit, division.panels_per_unit, division.row_chunks)
        return KernelCall(key, division.units, 1, 0, cost, derived)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.packed_matmul import emit_packed_matmul

        assert isinstance(key.operation, PackedMatMul)
        emit_packed_matmul(emitter, int(key.variant[0]), key.operation.epilogue)
