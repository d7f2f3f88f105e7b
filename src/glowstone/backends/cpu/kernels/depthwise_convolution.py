"""Depthwise convolution on channel blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from glowstone.backends.cpu.claims import claim_grain
from glowstone.backends.cpu.extra_operands import extra_kinds
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_channel_block, require_elements
from glowstone.backends.cpu.operations.blocked import DepthwiseConvolution
from glowstone.backends.cpu.row_plan import plan_rows
from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.lir.instruction import Instruction
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter


@emits(DepthwiseConvolution)
class DepthwiseConvolutionFamily(KernelFamily):
    """Variant: kinds of extras."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        require_channel_block(instruction, target)
        operation = cast(DepthwiseConvolution, instruction.operation)
        y, x, w = instruction.operands[:3]
        taps = operation.kernel[0] * operation.kernel[1]
        rows = plan_rows(y, spatial=2, row_work=taps * y.shape[3])
        cost = target.cost(2.0 * y.size * taps, FLOAT_BYTES * (y.size + x.size + w.size))
        return KernelCall(
            KernelKey.of(instruction, extra_kinds(instruction)),
            units=rows.units,
            grain=claim_grain(rows.units, cost),
            cost=cost,
            derived=rows.derived,
        )

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.depthwise_convolution import emit_depthwise_convolution

        emit_depthwise_convolution(key, target, emitter)
