"""Depthwise convolution on channel blocks: one vector of channels per position, the window unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from glowstone.backends.cpu.emitter import FLOAT_ALIGNMENT, Emitter
from glowstone.backends.cpu.generators.block_epilogue import BlockEpilogue, Epilogue, PixelOffsets
from glowstone.backends.cpu.generators.row_units import RowUnits
from glowstone.backends.cpu.generators.sliding_window import SlidingWindow, Sweep, Window
from glowstone.backends.cpu.ir_types import F32, Value, vector
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.operations.blocked import DepthwiseConvolution
from glowstone.backends.cpu.target import Target

Y, X, W = 0, 1, 2
COLUMNS_AXIS = 3
"""Of y [N, B, H, W, b]."""


def emit_depthwise_convolution(key: KernelKey, target: Target, emitter: Emitter) -> None:
    """Emit the kernel of a key."""
    operation = cast(DepthwiseConvolution, key.operation)
    lanes = target.channel_block
    kinds = tuple(str(kind) for kind in key.variant)
    epilogue = Epilogue(emitter, operation.epilogue, kinds, lanes, is_lanewise=True)
    window = Window(operation.kernel, operation.strides, operation.dilations)
    pads = [emitter.integer(0), emitter.integer(1)]
    sliding = SlidingWindow(emitter, window, pads, vector(F32, lanes), FLOAT_ALIGNMENT)
    neutral = emitter.stack(F32, lanes)
    emitter.store_floats(emitter.zeros(lanes), neutral)
    with RowUnits(emitter, spatial=2).rows() as (image, block, row):
        source = emitter.strided(emitter.pointer(X), F32, (image, emitter.stride(X, 0)), (block, emitter.stride(X, 1)))
        weights = emitter.offset(emitter.pointer(W), emitter.mul(block, window.taps * lanes))
        stored = _Stored(emitter, epilogue.block(block), epilogue.own_operands, image, row)

        def combine(total: Value, x: Value, tap: Value) -> Value:
            weight = emitter.load_floats(emitter.offset(weights, emitter.mul(tap, lanes)), lanes)
            return emitter.multiply_add(weight, x, total)

        sliding.row(source, row, Sweep(emitter.zeros(lanes), neutral, combine, stored.store, epilogue.is_long))


class _Stored:
    """Emits the epilogue and the store of some positions."""

    def __init__(
        self, emitter: Emitter, epilogue: BlockEpilogue, own_operands: list[int], image: Value, row: Sequence[Value]
    ) -> None:
        self._emitter = emitter
        self._epilogue = epilogue
        self._rows = {operand: self._row(operand, image, row) for operand in (Y, *own_operands)}
        """Where the row begins in y, and in operands with strides of their own."""

    def store(self, positions: Sequence[Sequence[Value]], sums: Sequence[Value]) -> None:
        pixels = []
        for *_, column in positions:
            offsets = {operand: self._offset(operand, column) for operand in self._rows}
            pixels.append(PixelOffsets(offsets.pop(Y), offsets))
        self._epilogue.store_group(sums, pixels)

    def _row(self, operand: int, image: Value, row: Sequence[Value]) -> Value:
        emitter = self._emitter
        total = emitter.mul(image, emitter.stride(operand, 0))
        for axis, coordinate in enumerate(row, 2):
            total = emitter.add(total, emitter.mul(coordinate, emitter.stride(operand, axis)))
        return total

    def _offset(self, operand: int, column: Value) -> Value:
        """Of a pixel of the row; those of y follow one another."""
        emitter = self._emitter
        step: Value | int = emitter.target.channel_block if operand == Y else emitter.stride(operand, COLUMNS_AXIS)
        return emitter.add(self._rows[operand], emitter.mul(column, step))
