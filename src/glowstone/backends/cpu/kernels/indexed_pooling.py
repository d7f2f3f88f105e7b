"""Pooling with positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import PoolWithIndices
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS_PER_TAP = 30
"""One tap, with its coordinates, takes about as long as this much arithmetic."""


@emits(PoolWithIndices)
class PoolWithIndicesFamily(KernelFamily):
    """One result after the other."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        assert isinstance(instruction.operation, PoolWithIndices)
        y, _, x = instruction.operands
        key = KernelKey.of(instruction)
        if y.size == 0:
            return KernelCall(key, 0, derived=(0, 0))
        taps = math.prod(instruction.operation.window)
        cost = target.cost(FLOPS_PER_TAP * taps * y.size, x.element.size * x.size)
        units, per_unit = row_division(y.size, cost)
        return KernelCall(key, units, 1, 0, cost, (per_unit, y.size))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.indexed_pooling import emit_pool_with_indices

        assert isinstance(key.operation, PoolWithIndices)
        emit_pool_with_indices(emitter, key.operation)
