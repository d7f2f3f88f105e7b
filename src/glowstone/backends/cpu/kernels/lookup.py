"""Searches among sorted keys. Keyed by the type of the keys and the size of the values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.loop_nest import by_size, row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Lookup
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS_PER_STEP = 200
"""Halving the keys once takes about as long as this much arithmetic in vectors."""


@emits(Lookup)
class LookupKernels(KernelFamily):
    """One element after the other, by halving without branches."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y, _, keys, _ = instruction.operands
        key = KernelKey.of(instruction)
        moved = [replace(operand, element=by_size(operand.element)) for operand in key.operands]
        operands: tuple[OperandKey, ...] = (moved[0], *key.operands[1:3], moved[3])
        steps = keys.size.bit_length()
        cost = target.cost(FLOPS_PER_STEP * steps * y.size, 0)
        units, per_unit = row_division(y.size, cost)
        return KernelCall(replace(key, operands=operands), units, 1, 0, cost, (per_unit, steps))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.lookup import emit_lookup

        emit_lookup(emitter)
