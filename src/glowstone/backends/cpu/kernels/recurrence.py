"""Recurrent networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.target import Target
from glowstone.errors import UnsupportedError
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Recurrence
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

ELEMENTS = (ElementType.F32, ElementType.F64)
"""16-bit floats are widened before: the states would lose precision from step to step."""


@emits(Recurrence)
class RecurrenceKernels(KernelFamily):
    """One sequence a unit, all its steps. Scratch holds its states, the gates' products, and the factor."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        operation, y = instruction.operation, instruction.operands[0]
        assert isinstance(operation, Recurrence)
        if y.element not in ELEMENTS:
            raise UnsupportedError(
                "no kernel for these element types",
                operator=operation.name,
                expected=", ".join(map(str, ELEMENTS)),
                found=y.element,
            )
        operands = tuple(OperandKey(view.element, view.rank) for view in instruction.operands)
        key = KernelKey(operation, operands)
        steps, batch, hidden = y.shape
        if batch * hidden == 0:
            return KernelCall(key, 0)
        weights = operation.gates * hidden * hidden
        per_unit = sum(map(expression_flops, operation.states))
        cost = target.cost(steps * batch * (2 * weights + hidden * per_unit), steps * batch * y.element.size * weights)
        rows = len(operation.states) + operation.gates + (operation.factor is not None)
        return KernelCall(key, batch, 1, rows * hidden * y.element.size, cost)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.recurrence import RecurrenceBody

        assert isinstance(key.operation, Recurrence)
        RecurrenceBody(emitter, key.operation).emit()
