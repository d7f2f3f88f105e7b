"""Elementwise kernels: axes merged, vectors along the inner one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import LoopNest, WorkDivision
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Elementwise
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter


@emits(Elementwise)
class ElementwiseKernels(KernelFamily):
    """Keyed by each operand's inner stride once axes are merged."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        assert isinstance(instruction.operation, Elementwise)
        nest = LoopNest.of(instruction.operands)
        flops = sum(expression_flops(expression) for expression in instruction.operation.expressions)
        bytes_per_element = sum(view.element.size for view in instruction.operands)
        division = WorkDivision.of(nest, target, flops, bytes_per_element)
        cost = target.cost(flops * nest.size, bytes_per_element * nest.size)
        return KernelCall(nest.key(instruction, target), division.units, division.grain, 0, cost, division.derived)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.elementwise import emit_elementwise

        assert isinstance(key.operation, Elementwise)
        emit_elementwise(emitter, key.operation.expressions)
