"""Attention in one kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.kernels.matmul import right_form
from glowstone.backends.cpu.operations import FusedAttention
from glowstone.backends.cpu.product_tile import ProductTile, panel_width
from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.lir.instruction import Instruction
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

SCORE_BYTES = 128 * 1024
"""Scores of a unit, about: they stay in the second-level cache."""
FEWEST_UNITS = 4
"""Of one model's worth of heads, so that a few threads share it."""
SOFTMAX_FLOPS = 40


@emits(FusedAttention)
class FusedAttentionKernels(KernelFamily):
    """Variant: the panel's width, and how columns of keys and of values are brought side by side."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        operation = instruction.operation
        assert isinstance(operation, FusedAttention)
        y, q, k, v, *extras = instruction.operands
        panel = panel_width(target)
        key = KernelKey.of(instruction, (panel, right_form(k), right_form(v)))
        if y.size == 0:
            return KernelCall(key, 0, derived=(0, 0))
        queries, keys, batches = y.shape[-2], k.shape[-1], math.prod(y.shape[:-2])
        pitch = max(1, -(-keys // panel)) * panel
        rows = _rows_per_unit(queries, pitch, batches, ProductTile.of(target, panel).rows)
        chunks = -(-queries // rows)
        scores = batches * queries * keys
        flops = 2.0 * operation.multiply_adds(instruction.operands)
        flops += scores * (SOFTMAX_FLOPS + expression_flops(operation.scores))
        moved = FLOAT_BYTES * (y.size + q.size + chunks * (k.size + v.size) + scores * len(extras))
        floats = panel * max(q.shape[-1], keys) + rows * (pitch + 1)
        return KernelCall(
            key, batches * chunks, scratch=FLOAT_BYTES * floats, cost=target.cost(flops, moved), derived=(rows, chunks)
        )

    def tile(self, instruction: Instruction, target: Target) -> str:
        panel = panel_width(target)
        return f"{ProductTile.of(target, panel).rows} rows x {panel} columns"

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.attention import AttentionEmitter

        assert isinstance(key.operation, FusedAttention)
        panel, keys, values = key.variant
        AttentionEmitter(emitter, int(panel), (str(keys), str(values)), key.operation.scores).emit()


def _rows_per_unit(queries: int, pitch: int, batches: int, tile: int) -> int:
    """Whole tiles of queries whose scores fit, fewer where there would be too few units."""
    most = max(1, SCORE_BYTES // (FLOAT_BYTES * pitch * tile)) * tile
    chunks = max(-(-queries // most), -(-FEWEST_UNITS // batches))
    return max(1, min(queries, -(-queries // (chunks * tile)) * tile))
