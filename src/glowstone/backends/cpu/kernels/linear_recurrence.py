"""The recurrence of linear attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import LinearRecurrence
from glowstone.lir.operations.linear_recurrence import K
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOAT_BYTES = 4
PASSES = 4
"""Times that a step goes over the state: decay, correction, update, and the queries."""


@emits(LinearRecurrence)
class LinearRecurrenceKernels(KernelFamily):
    """One state a unit, all its steps. Scratch holds the state and one row."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y = instruction.operands[0]
        batch, steps, heads, width = y.shape
        groups, depth = instruction.operands[K].shape[2:]
        operands = tuple(OperandKey(view.element, view.rank) for view in instruction.operands)
        key = KernelKey(instruction.operation, operands)
        if batch * groups == 0:
            return KernelCall(key, 0)
        state = depth * width
        cost = target.cost(2 * batch * steps * state * (PASSES * groups + heads), FLOAT_BYTES * batch * groups * state)
        return KernelCall(key, batch * groups, 1, FLOAT_BYTES * (state + width), cost)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.linear_recurrence import LinearRecurrenceBody

        assert isinstance(key.operation, LinearRecurrence)
        LinearRecurrenceBody(emitter, key.operation).emit()
