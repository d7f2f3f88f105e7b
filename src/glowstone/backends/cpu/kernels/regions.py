"""Kernels of pooling over regions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.regions import RoiAlign, RoiPool
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS_PER_POINT = 60
EXPECTED_POINTS = 2
"""Points of a cell along one axis, where the region decides."""


@emits(RoiAlign, RoiPool)
class RegionKernels(KernelFamily):
    """One row of cells after another."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y = instruction.operands[0]
        key = KernelKey.of(instruction)
        if y.size == 0:
            return KernelCall(key, 0, derived=(0,))
        operation = instruction.operation
        points = (operation.points if isinstance(operation, RoiAlign) else 0) or EXPECTED_POINTS
        cost = target.cost(FLOPS_PER_POINT * points * points * y.size, 5 * y.element.size * y.size)
        units, per_unit = row_division(math.prod(y.shape[:-1]), cost)
        return KernelCall(key, units, 1, 0, cost, (per_unit,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.regions import RegionPooling, emit_roi_align

        if isinstance(key.operation, RoiAlign):
            emit_roi_align(emitter, key.operation)
        else:
            assert isinstance(key.operation, RoiPool)
            RegionPooling(emitter, key.operation).emit()
