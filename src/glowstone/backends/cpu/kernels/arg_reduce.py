"""Positions of extrema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.kernels.reduce import ROWS, plan_outer
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import ArgReduce
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS = 4


@emits(ArgReduce)
class ArgReduceKernels(KernelFamily):
    """Keyed by whether the reduced axis is the contiguous one."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        return plan_outer(instruction, target, FLOPS, instruction.operands[0].shape[1])

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.arg_reduce import emit_arg_columns, emit_arg_rows

        assert isinstance(key.operation, ArgReduce)
        (emit_arg_rows if key.variant[0] == ROWS else emit_arg_columns)(emitter, key.operation)
