"""Fill kernels. Keyed by element size and the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import LoopNest, WorkDivision
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Fill
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter


@emits(Fill)
class FillKernels(KernelFamily):
    """The same bits in every element."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        nest = LoopNest.of(instruction.operands)
        size = instruction.operands[0].element.size
        division = WorkDivision.of(nest, target, 1, size)
        key = nest.key(instruction, target, only_size=True)
        return KernelCall(
            key, division.units, division.grain, 0, target.cost(nest.size, size * nest.size), division.derived
        )

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.copy import emit_fill

        assert isinstance(key.operation, Fill)
        emit_fill(emitter, key.operation.bits)
