"""Pooling, blocked and plain: largest or mean value of windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from glowstone.backends.cpu.claims import claim_grain
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_channel_block, require_elements
from glowstone.backends.cpu.row_plan import plan_rows
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.pooling import Pool
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOATS = (ElementType.F32, ElementType.F64)
INTEGERS = (ElementType.I8, ElementType.U8, ElementType.I32, ElementType.I64)


@emits(Pool)
class PoolFamily(KernelFamily):
    """No variant."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        operation = cast(Pool, instruction.operation)
        require_elements(instruction, *FLOATS, *(INTEGERS if operation.mode == "max" else ()))
        if operation.blocked:
            require_channel_block(instruction, target)
        y, x = instruction.operands
        spatial = len(operation.window)
        taps = math.prod(operation.window)
        rows = plan_rows(y, spatial, row_work=taps * y.shape[1 + spatial])
        cost = target.cost(float(y.size * taps), y.element.size * (y.size + x.size))
        return KernelCall(
            KernelKey.of(instruction),
            units=rows.units,
            grain=claim_grain(rows.units, cost),
            cost=cost,
            derived=rows.derived,
        )

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.pool import PoolGenerator

        PoolGenerator(key, target, emitter).emit()
