"""Running sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.kernels.reduce import ROWS, plan_outer
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Cumulative
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS = 32
"""An element has to wait for the one before."""


@emits(Cumulative)
class CumulativeKernels(KernelFamily):
    """Keyed by whether the accumulated axis is the contiguous one."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        return plan_outer(instruction, target, FLOPS, instruction.operands[0].shape[2])

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.cumulative import emit_cumulative_columns, emit_cumulative_rows

        assert isinstance(key.operation, Cumulative)
        (emit_cumulative_rows if key.variant[0] == ROWS else emit_cumulative_columns)(emitter, key.operation)
