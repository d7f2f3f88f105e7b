"""Products with packed weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.operations import PackedMatMul
from glowstone.backends.cpu.product_tile import ProductDivision, ProductTile
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter


@emits(PackedMatMul)
class PackedMatMulKernels(KernelFamily):
    """Keyed by the width of a panel."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        assert isinstance(instruction.operation, PackedMatMul)
        y, a, b, *extras = instruction.operands
        rows = y.shape[0]
        depth, panel = a.shape[1], b.shape[2]
        key = KernelKey.of(instruction, (panel,))
        if y.size == 0:
            return KernelCall(key, 0, derived=(0, 0, 0))
        flops = 2 * depth + expression_flops(instruction.operation.epilogue)
        moved = 4 * (b.size + a.size + y.size * (1 + len(extras)))
        cost = target.cost(flops * y.size, moved)
        division = ProductDivision.of(rows, b.shape[0], ProductTile.of(target, panel), cost / (rows * b.shape[0]))
        derived = (division.rows_per_unit, division.panels_per_unit, division.panel_groups)
        return KernelCall(key, division.units, 1, 0, cost, derived)

    def tile(self, instruction: Instruction, target: Target) -> str:
        panel = instruction.operands[2].shape[2]
        return f"{ProductTile.of(target, panel).rows} rows x {panel} columns"

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.packed_matmul import emit_packed_matmul

        assert isinstance(key.operation, PackedMatMul)
        emit_packed_matmul(emitter, int(key.variant[0]), key.operation.epilogue)
