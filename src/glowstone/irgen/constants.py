"""Weights as buffers: one buffer per tensor and layout, shared by the programs of all shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.graph import Tensor
from glowstone.lir import Buffer, BufferKind
from glowstone.support.budget import budget
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

    def freeze(self, block: Array) -> None:
        """Move all data into one block of bytes and let tensors view it; nothing can be added any more.

        Args:
            block: at least `bytes` bytes, written here.
        """
        offsets = self.offsets()
        for (tensor, channel_block), buffer in self._buffers.items():
            assert buffer.data is not None
            part = block[offsets[buffer] : offsets[buffer] + buffer.bytes].view(buffer.data.dtype).reshape(buffer.shape)
            part[...] = buffer.data
            self._settle(tensor, channel_block, buffer, part)
        self._frozen = True

    def adopt(self, block: Array, entries: list[tuple[Tensor, int | None, Buffer]]) -> None:
        """The pool of a model whose block is already written, as `entries` gave it."""
        offsets = _packed([buffer for _, _, buffer in entries])
        for tensor, channel_block, buffer in entries:
            part = block[offsets[buffer] : offsets[buffer] + buffer.bytes].view(buffer.element.dtype)
            self._settle(tensor, channel_block, buffer, part.reshape(buffer.shape))
        self._buffers = {(tensor, channel_block): buffer for tensor, channel_block, buffer in entries}
        self._frozen = True

    def entries(self) -> list[tuple[Tensor, int | None, Buffer]]:
        """Tensor, layout and buffer, in order of first use."""
        return [(tensor, channel_block, buffer) for (tensor, channel_block), buffer in self._buffers.items()]

    @staticmethod
    def _settle(tensor: Tensor, channel_block: int | None, buffer: Buffer, part: Array) -> None:
        """Let buffer and tensor view the block instead of holding a copy."""
        buffer.data = part
        if channel_block is None:
            tensor.move_to(part)

    def buffer(self, tensor: Tensor, channel_block: int | None) -> Buffer:
        """The buffer of a tensor in a layout; made on first use."""
        key = (tensor, channel_block)
        if key not in self._buffers:
            if channel_block is not None:
                size = tensor.type.with_channel_block(channel_block).bytes
                budget().take_bytes(size, "weights in another layout")
            data = tensor.array if channel_block is None else block_channels(tensor.array, channel_block)
            channels = None if channel_block is None else tensor.array.shape[CHANNEL_AXIS]
            if self._frozen:
                return Buffer("late", BufferKind.PLAN_CONSTANT, tensor.element, data.shape, channels, data)
            name = f"c{len(self._buffers)}"
            self._buffers[key] = Buffer(name, BufferKind.CONSTANT, tensor.element, data.shape, channels, data)
        return self._buffers[key]

    def offsets(self) -> dict[Buffer, int]:
        """Byte offset of every buffer in the block of weights."""
        return _packed(list(self._buffers.values()))

    @property
    def bytes(self) -> int:
        """Size of the block of weights."""
        return sum(map(_padded_bytes, self._buffers.values()))

    def buffers(self) -> list[Buffer]:
        """All buffers, in order of first use."""
        return list(self._buffers.values())


def _padded_bytes(buffer: Buffer) -> int:
    return -(-buffer.bytes // ALIGNMENT) * ALIGNMENT


def _packed(buffers: list[Buffer]) -> dict[Buffer, int]:
    """Byte offsets of buffers one after another, each on a cache line."""
    result = {}
    end = 0
    for buffer in buffers:
        result[buffer] = end
        end += _padded_bytes(buffer)
    return result


def block_channels(array: Array, channel_block: int) -> Array:
    """[N, C, spatial...] to [N, ceil(C / b), spatial..., b], padding lanes zero."""
    batch, channels, *spatial = array.shape
    blocks = -(-channels // channel_block)
    padded = np.zeros((batch, blocks * channel_block, *spatial), array.dtype)
    padded[:, :channels] = array
    split = padded.reshape(batch, blocks, channel_block, *spatial)
    return np.ascontiguousarray(np.moveaxis(split, 2, -1))
