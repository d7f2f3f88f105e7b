"""The epilogue of an anchor kernel: a scalar expression applied to vectors of final sums as they are stored.

In: sums, one vector of a channel block. Out: the vector to store. Extra operands are loaded here; how each is addressed
is compiled in: like the output (`OUTPUT`), the same for all pixels (`CHANNEL`), or by strides of its own (`OWN`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.expression_cost import expression_flops
from glowstone.backends.cpu.extra_operands import CHANNEL, FIRST_EXTRA, OWN
from glowstone.backends.cpu.ir_types import F32, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.vector_math import emit_expression
from glowstone.scalar import Expression, evaluate

BLOCK_AXIS = 1
LONG_EXPRESSION_FLOPS = 20
"""From here on one copy of the code per kernel is better than one per accumulator."""


@dataclass(frozen=True)
class PixelOffsets:
    """Offsets in elements of one pixel: in y, and in the extra operands of kind `OWN`, by operand number."""

    output: Value
    own: dict[int, Value]


class Epilogue:
    """Emits the epilogue and the store of one kernel."""

    def __init__(
        self,
        emitter: Emitter,
        expression: Expression | None,
        kinds: tuple[str, ...],
        lanes: int,
        is_lanewise: bool = False,
    ) -> None:
        """With `is_lanewise` sums of padding lanes are zero, as no other lane has a part in them: even an infinite one,
        which times a weight of zero is NaN.
        """
        self.emitter = emitter
        self.expression = expression
        self.kinds = kinds
        self.lanes = lanes
        self.is_masked = not (is_lanewise and self._keeps_zero)

    @property
    def _keeps_zero(self) -> bool:
        """Whether lanes stay zero that are so in all inputs."""
        extras = self.emitter.key.operands[FIRST_EXTRA : FIRST_EXTRA + len(self.kinds)]
        if any(extra.inner is InnerStride.ZERO for extra in extras):
            return False
        zero = np.zeros(1, np.float32)
        return self.expression is None or not evaluate(self.expression, [zero] * (1 + len(extras))).any()

    @property
    def is_long(self) -> bool:
        """Whether its code is worth sharing between accumulators."""
        return expression_flops(self.expression) >= LONG_EXPRESSION_FLOPS

    @property
    def own_operands(self) -> list[int]:
        """Operand numbers of the extras that need pixel offsets of their own."""
        return [FIRST_EXTRA + index for index, kind in enumerate(self.kinds) if kind == OWN]

    def block(self, block: Value) -> BlockEpilogue:
        """What all pixels of an output block share."""
        return BlockEpilogue(self, block)


class BlockEpilogue:
    """Emits epilogue and store for the pixels of one output block."""

    def __init__(self, epilogue: Epilogue, block: Value) -> None:
        emitter, lanes = epilogue.emitter, epilogue.lanes
        self._emitter = emitter
        self._expression = epilogue.expression
        self._lanes = lanes
        self._is_masked = epilogue.is_masked
        channels = emitter.integer(2)
        self._mask = emitter.first_lanes(emitter.sub(channels, emitter.mul(block, lanes)), lanes)
        self._output = emitter.strided(emitter.pointer(0), F32, (block, emitter.stride(0, BLOCK_AXIS)))
        self._extras = [self._extra(number, kind, block) for number, kind in enumerate(epilogue.kinds, FIRST_EXTRA)]

    def _extra(self, operand: int, kind: str, block: Value) -> tuple[int, str, Value]:
        """For `CHANNEL` the vector itself, else the address of the block."""
        emitter = self._emitter
        address = emitter.strided(emitter.pointer(operand), F32, (block, emitter.stride(operand, BLOCK_AXIS)))
        return operand, kind, self._load(operand, address) if kind == CHANNEL else address

    def _load(self, operand: int, address: Value) -> Value:
        emitter = self._emitter
        if emitter.key.operands[operand].inner is InnerStride.ZERO:
            return emitter.splat(emitter.load_floats(address, 1), self._lanes)
        return emitter.load_floats(address, self._lanes)

    def store(self, sums: Value, pixel: PixelOffsets) -> None:
        """Apply the expression to the sums of one pixel and store; padding lanes become zero."""
        self.store_group([sums], [pixel])

    def store_group(self, sums: Sequence[Value], pixels: Sequence[PixelOffsets]) -> None:
        """As `store`, for some pixels side by side in one wide vector, so that one hides the latency of the other.

        All is loaded before anything is stored: a pixel may be given twice, also where an extra is stored over.
        """
        emitter = self._emitter
        inputs = [emitter.join(sums)]
        for operand, kind, source in self._extras:
            if kind == CHANNEL:
                loaded = [source] * len(pixels)
            else:
                offsets = [pixel.own[operand] if kind == OWN else pixel.output for pixel in pixels]
                loaded = [self._load(operand, emitter.offset(source, offset)) for offset in offsets]
            inputs.append(emitter.join(loaded))
        lanes = self._lanes * len(pixels)
        results = inputs[0] if self._expression is None else emit_expression(emitter, self._expression, inputs, lanes)
        for number, pixel in enumerate(pixels):
            result = emitter.part(results, number * self._lanes, self._lanes)
            if self._is_masked:
                result = emitter.select(self._mask, result, emitter.zeros(self._lanes))
            emitter.store_floats(result, emitter.offset(self._output, pixel.output))
