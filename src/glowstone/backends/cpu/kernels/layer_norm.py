"""Layer normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.kernels.reduce import plan_outer
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import LayerNorm
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS = 16
FLOATS = tuple(element for element in ElementType if element.is_float)


@emits(LayerNorm)
class LayerNormKernels(KernelFamily):
    """Rows of contiguous elements."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, *FLOATS)
        return plan_outer(instruction, target, FLOPS, 1)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.normalize import emit_layer_norm

        assert isinstance(key.operation, LayerNorm)
        emit_layer_norm(emitter, key.operation.epsilon)
