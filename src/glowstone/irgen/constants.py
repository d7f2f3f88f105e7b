"""Weights as buffers: one buffer per tensor and layout, shared by the programs of all shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.graph import Tensor
from glowstone.lir import Buffer, BufferKind
from glowstone.types import CHANNEL_AXIS

Array = np.ndarray[Any, np.dtype[Any]]


ALIGNMENT = 64
"""Bytes: every constant begins on a cache line."""


class ConstantPool:
    """Constant buffers by content, at fixed offsets, so that the plans of all shapes share one block of weights.

    A buffer's `data` is physical: blocked and zero-padded where the layout asks. Tensors that come after `freeze` get
    buffers of their own plan.
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[Tensor, int | None], Buffer] = {}
        self._frozen = False

    def freeze(self) -> None:
        """The block of weights is made: nothing can be added to it any more."""
        self._frozen = True

    def buffer(self, tensor: Tensor, channel_block: int | None) -> Buffer:
        """The buffer of a tensor in a layout; made on first use."""
        key = (tensor, channel_block)
        if key not in self._buffers:
            data = tensor.array if channel_block is None else block_channels(tensor.array, channel_block)
            channels = None if channel_block is None else tensor.array.shape[CHANNEL_AXIS]
            if self._frozen:
                return Buffer("late", BufferKind.PLAN_CONSTANT, tensor.element, data.shape, channels, data)
            name = f"c{len(self._buffers)}"
            self._buffers[key] = Buffer(name, BufferKind.CONSTANT, tensor.element, data.shape, channels, data)
        return self._buffers[key]

    def offsets(self) -> dict[Buffer, int]:
        """Byte offset of every buffer in the block of weights."""
        result = {}
        end = 0
        for buffer in self._buffers.values():
            result[buffer] = end
            end += -(-buffer.bytes // ALIGNMENT) * ALIGNMENT
        return result

    @property
    def bytes(self) -> int:
        """Size of the block of weights."""
        return sum(-(-buffer.bytes // ALIGNMENT) * ALIGNMENT for buffer in self._buffers.values())

    def buffers(self) -> list[Buffer]:
        """All buffers, in order of first use."""
        return list(self._buffers.values())


def block_channels(array: Array, channel_block: int) -> Array:
    """[N, C, spatial...] to [N, ceil(C / b), spatial..., b], padding lanes zero."""
    batch, channels, *spatial = array.shape
    blocks = -(-channels // channel_block)
    padded = np.zeros((batch, blocks * channel_block, *spatial), array.dtype)
    padded[:, :channels] = array
    split = padded.reshape(batch, blocks, channel_block, *spatial)
    return np.ascontiguousarray(np.moveaxis(split, 2, -1))
