"""Softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.kernels.reduce import ROWS, plan_outer
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Softmax
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS = 40
FLOATS = tuple(element for element in ElementType if element.is_float)


@emits(Softmax)
class SoftmaxKernels(KernelFamily):
    """Keyed by whether the normalized axis is the contiguous one."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, *FLOATS)
        return plan_outer(instruction, target, FLOPS, instruction.operands[0].shape[2])

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.normalize import emit_softmax_columns, emit_softmax_rows

        (emit_softmax_rows if key.variant[0] == ROWS else emit_softmax_columns)(emitter)
