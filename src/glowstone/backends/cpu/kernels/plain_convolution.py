"""Convolutions in the plain layout: what has no blocked form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.loop_nest import row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Convolution
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

SLOWDOWN = 6
"""How much slower than the arithmetic's peak: every multiply-add loads and stores its sum."""
LARGEST_CARRIED_BYTES = 8
NUMBERS = tuple(element for element in ElementType if element.is_float or element.is_integer)


@emits(Convolution)
class PlainConvolutionKernels(KernelFamily):
    """One row of results at a time, summed in scratch."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, *NUMBERS)
        assert isinstance(instruction.operation, Convolution)
        y, x, w = instruction.operands[:3]
        key = KernelKey.of(instruction)
        if y.size == 0:
            return KernelCall(key, 0, derived=(0, 0))
        flops = 2 * math.prod(w.shape[1:]) + expression_flops(instruction.operation.epilogue)
        cost = target.cost(SLOWDOWN * flops * y.size, y.element.size * (x.size + w.size + y.size))
        rows = math.prod(y.shape[:-1])
        units, per_unit = row_division(rows, cost)
        scratch = LARGEST_CARRIED_BYTES * y.shape[-1]
        return KernelCall(key, units, 1, scratch, cost, (per_unit, rows))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.convolution import emit_convolution

        assert isinstance(key.operation, Convolution)
        emit_convolution(emitter, key.operation)
