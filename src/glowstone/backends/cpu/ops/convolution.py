"""Convolutions on channel-blocked data, with packed weights. Arrays in `reference` are logical, weights packed.

The packed forms are those of `backends/cpu/operations/blocked.py`; `pack` and `unpack` here are inverse to each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.backends.cpu.ops.zero_padding import zero_padded
from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Value, operator
from glowstone.ops import Conv
from glowstone.ops.element_sets import FLOATS
from glowstone.ops.window import Window
from glowstone.types import CHANNEL_AXIS, TensorType

Array = np.ndarray[Any, np.dtype[Any]]


class PackedConvolution(Operator):
    """Base: a convolution x [N, C, H, W] to [N, channels, OH, OW] blocked by `block`, weights packed."""

    operands = (Operand("x", FLOATS), Operand("w", FLOATS))
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    padding: str
    channels: int
    block: int
    reads_blocked = True

    @property
    def window(self) -> Window:
        return Window(self.kernel, self.strides, self.dilations, self.pads, self.padding)

    @property
    def input_channels(self) -> int:
        """Channels that x must have."""
        raise NotImplementedError

    @property
    def group_count(self) -> int:
        """Groups of the convolution."""
        return 1

    def unpack(self, w: Array) -> Array:
        """Weights [channels, input_channels / groups, KH, KW]."""
        raise NotImplementedError

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x = operands[0]
        expected_block = self.block if self.reads_blocked else None
        if x.type.channel_block != expected_block or x.shape[CHANNEL_AXIS] != self.input_channels:
            raise ShapeError(
                "x does not fit the packed weights",
                found=str(x.type),
                expected=f"{self.input_channels} channels in blocks of {expected_block}",
            )
        shape = (x.shape[0], self.channels, *self.window.output_extents(x.shape[2:]))
        return (TensorType(x.element, shape, self.block),)

    def reference(self, x: Array, w: Array) -> Array:
        plain = Conv(self.strides, self.dilations, self.pads, self.group_count, self.padding)
        return plain.reference(x, self.unpack(w))


@operator
class BlockedConv(PackedConvolution):
    """Dense or grouped convolution, blocked to blocked. w [panels, IB, KH, KW, b, tile, b]."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    padding: str = "explicit"
    channels: int = 8
    block: int = 8
    inputs: int = 8
    groups: int = 1
    tile: int = 1

    @property
    def input_channels(self) -> int:
        return self.inputs

    @property
    def group_count(self) -> int:
        return self.groups

    def pack(self, w: Array) -> Array:
        """Weights [channels, inputs / groups, KH, KW] in the order that the kernel streams them."""
        outputs, inputs, height, width = w.shape
        in_blocks, out_blocks = -(-inputs // self.block), -(-outputs // self.block)
        panels = -(-out_blocks // self.tile)
        padded = zero_padded(w, (panels * self.tile * self.block, in_blocks * self.block, height, width))
        split = padded.reshape(panels, self.tile, self.block, in_blocks, self.block, height, width)
        return np.ascontiguousarray(split.transpose(0, 3, 5, 6, 4, 1, 2))

    def unpack(self, w: Array) -> Array:
        panels, in_blocks, height, width, lanes, tile, _ = w.shape
        plain = w.transpose(0, 5, 6, 1, 4, 2, 3).reshape(panels * tile * lanes, in_blocks * lanes, height, width)
        return plain[: self.channels, : self.inputs // self.groups]


@operator
class DepthwiseConv(PackedConvolution):
    """One filter per channel. w [B, KH, KW, b]."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    padding: str = "explicit"
    channels: int = 8
    block: int = 8

    @property
    def input_channels(self) -> int:
        return self.channels

    @property
    def group_count(self) -> int:
        return self.channels

    def pack(self, w: Array) -> Array:
        """Weights [channels, 1, KH, KW] with channels innermost, in blocks."""
        channels, _, height, width = w.shape
        blocks = -(-channels // self.block)
        padded = zero_padded(w[:, 0], (blocks * self.block, height, width))
        split = padded.reshape(blocks, self.block, height, width)
        return np.ascontiguousarray(split.transpose(0, 2, 3, 1))

    def unpack(self, w: Array) -> Array:
        blocks, height, width, lanes = w.shape
        return w.transpose(0, 3, 1, 2).reshape(blocks * lanes, 1, height, width)[: self.channels]


@operator
class StemConv(PackedConvolution):
    """Few channels in the plain layout, blocked result. w [panels, I, KH, KW, tile, b]."""

    reads_blocked = False
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    padding: str = "explicit"
    channels: int = 8
    block: int = 8
    inputs: int = 3
    tile: int = 1

    @property
    def input_channels(self) -> int:
        return self.inputs

    def pack(self, w: Array) -> Array:
        """Weights [channels, inputs, KH, KW], output channels innermost."""
        outputs, inputs, height, width = w.shape
        panels = -(-outputs // (self.block * self.tile))
        padded = zero_padded(w, (panels * self.tile * self.block, inputs, height, width))
        split = padded.reshape(panels, self.tile, self.block, inputs, height, width)
        return np.ascontiguousarray(split.transpose(0, 3, 4, 5, 1, 2))

    def unpack(self, w: Array) -> Array:
        panels, inputs, height, width, tile, lanes = w.shape
        plain = w.transpose(0, 4, 5, 1, 2, 3).reshape(panels * tile * lanes, inputs, height, width)
        return plain[: self.channels]
