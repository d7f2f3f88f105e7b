"""Convolutions on channel-blocked data.

With b lanes per block, data are [N, ceil(C / b), H, W, b]. Padding lanes of weights are zero, so padding lanes of sums
are; an epilogue that does not keep zero is masked there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.convolution import WEIGHTS, convolve
from glowstone.lir.operations.epilogue import apply_epilogue, extra_count, verify_epilogue
from glowstone.lir.strides import has_dense_planes, is_blocked_epilogue_operand
from glowstone.scalar import Expression

SPATIAL = 2


class BlockedAnchor(Operation):
    """What the three share: operands y, x, w, extras; the epilogue. Integers: pad top, pad left, output channels."""

    epilogue: Expression | None
    ulp_bound: ClassVar[float] = 64.0
    integer_names: ClassVar[tuple[str, ...]] = ("pad_top", "pad_left", "channels")

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT,) + (Access.IN,) * (2 + extra_count(self.epilogue))

    @cached_property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        return tuple((0, 3 + index) for index in range(extra_count(self.epilogue)))

    def accepts(self, operand: int, view: View) -> bool:
        """Batches and blocks anywhere, planes dense; weights contiguous."""
        if operand == WEIGHTS:
            return view.is_contiguous
        return is_blocked_epilogue_operand(view) if operand > WEIGHTS else has_dense_planes(view)

    def multiply_adds(self, views: Sequence[View]) -> int:
        """Every weight once for every pixel of the output."""
        y, _, w = views[:3]
        return y.shape[0] * math.prod(y.shape[2:4]) * w.size

    def _store(self, y: Array, sums: Array, extras: Sequence[Array], channels: int) -> None:
        """Block plain sums [N, C, H, W], apply the epilogue, and keep padding lanes zero."""
        result = apply_epilogue(self.epilogue, block(sums, y.shape[-1]).astype(y.dtype), extras)
        lane = np.arange(y.shape[1] * y.shape[-1]).reshape(1, y.shape[1], 1, 1, y.shape[-1])
        y[...] = np.where(lane < channels, result, y.dtype.type(0))


@operation
class BlockedConvolution(BlockedAnchor):
    """Dense or grouped convolution, blocked to blocked.

    Operands: y [N, OB, OH, OW, b], x [N, IB, H, W, b], w [OB / tile, IB / groups, KH, KW, b (in), tile, b (out)]
    with `tile` output blocks side by side (OB is a multiple of it; a last partial tile is padded with zero weights,
    then w has ceil(OB / tile) panels). With groups > 1, channels per group are multiples of b and output blocks per
    group of tile.
    """

    strides: tuple[int, int]
    dilations: tuple[int, int]
    groups: int
    tile: int
    epilogue: Expression | None = None

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, w, *extras = views
        require(y.rank == x.rank == 5 and w.rank == 7, f"ranks {y.rank}, {x.rank}, {w.rank}")
        require(len(integers) == 3, "integers are pad top, pad left, output channels")
        panels, in_blocks, _, _, lanes_in, tile, lanes_out = w.shape
        require(lanes_in == x.shape[4] and lanes_out == y.shape[4], f"lanes of {w.shape}, {x.shape}, {y.shape}")
        require(tile == self.tile and panels == -(-y.shape[1] // tile), f"{panels} panels for {y.shape[1]} blocks")
        require(in_blocks * self.groups == x.shape[1], f"{x.shape[1]} input blocks, weights for {in_blocks}")
        require(y.shape[0] == x.shape[0], f"batches {y.shape[0]}, {x.shape[0]}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, w, *extras = arrays
        panels, in_blocks, height, width, lanes_in, tile, lanes_out = w.shape
        plain = np.transpose(w, (0, 5, 6, 1, 4, 2, 3)).reshape(
            panels * tile * lanes_out, in_blocks * lanes_in, height, width
        )[: y.shape[1] * y.shape[4]]
        sums = convolve(unblock(x), plain, y.shape[2:4], self.strides, self.dilations, integers[:2], self.groups)
        self._store(y, sums, extras, integers[2])


@operation
class DepthwiseConvolution(BlockedAnchor):
    """One filter per channel. Operands: y [N, B, OH, OW, b], x [N, B, H, W, b], w [B, KH, KW, b], extras."""

    strides: tuple[int, int]
    dilations: tuple[int, int]
    kernel: tuple[int, int]
    epilogue: Expression | None = None

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, w, *extras = views
        require(y.rank == x.rank == 5 and w.rank == 4, f"ranks {y.rank}, {x.rank}, {w.rank}")
        require(len(integers) == 3, "integers are pad top, pad left, output channels")
        require(y.shape[:2] == x.shape[:2] and y.shape[4] == x.shape[4], f"{y.shape} from {x.shape}")
        require(w.shape == (x.shape[1], *self.kernel, x.shape[4]), f"weights {w.shape} for {x.shape}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, w, *extras = arrays
        blocks, height, width, lanes = w.shape
        plain = np.transpose(w, (0, 3, 1, 2)).reshape(blocks * lanes, 1, height, width)
        sums = convolve(unblock(x), plain, y.shape[2:4], self.strides, self.dilations, integers[:2], blocks * lanes)
        self._store(y, sums, extras, integers[2])


@operation
class StemConvolution(BlockedAnchor):
    """Few input channels in the plain layout, blocked output.

    Operands: y [N, OB, OH, OW, b], x [N, I, H, W], w [ceil(OB / tile), I, KH, KW, tile, b], extras.
    """

    strides: tuple[int, int]
    dilations: tuple[int, int]
    kernel: tuple[int, int]
    channels: int
    tile: int
    epilogue: Expression | None = None

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, w, *extras = views
        require(y.rank == 5 and x.rank == 4 and w.rank == 6, f"ranks {y.rank}, {x.rank}, {w.rank}")
        require(len(integers) == 3, "integers are pad top, pad left, output channels")
        panels = -(-y.shape[1] // self.tile)
        expected = (panels, self.channels, *self.kernel, self.tile, y.shape[4])
        require(w.shape == expected and x.shape[1] == self.channels, f"weights {w.shape}, not {expected}")
        require(y.shape[0] == x.shape[0], f"batches {y.shape[0]}, {x.shape[0]}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, w, *extras = arrays
        plain = np.transpose(w, (0, 4, 5, 1, 2, 3)).reshape(-1, *w.shape[1:4])[: y.shape[1] * y.shape[4]]
        sums = convolve(x, plain, y.shape[2:4], self.strides, self.dilations, integers[:2], 1)
        self._store(y, sums, extras, integers[2])


def unblock(x: Array) -> Array:
    """[N, B, H, W, b] to [N, B * b, H, W]."""
    batch, blocks, height, width, lanes = x.shape
    return np.transpose(x, (0, 1, 4, 2, 3)).reshape(batch, blocks * lanes, height, width)


def block(x: Array, lanes: int) -> Array:
    """[N, B * b, H, W] to [N, B, H, W, b]."""
    batch, channels, height, width = x.shape
    return np.transpose(x.reshape(batch, channels // lanes, lanes, height, width), (0, 1, 3, 4, 2))
