"""Three-by-three convolution with transformed weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.backends.cpu.ops.convolution import PackedConvolution
from glowstone.backends.cpu.ops.zero_padding import zero_padded
from glowstone.backends.cpu.winograd_transforms import FILTERINGS, KERNEL, MinimalFiltering
from glowstone.graph import operator

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class WinogradConv(PackedConvolution):
    """A 3 x 3 convolution of stride 1 by F(tile x tile, 3 x 3). w [(tile + 2)^2, panels, IB * b, panel]."""

    kernel: tuple[int, int] = (KERNEL, KERNEL)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    padding: str = "explicit"
    channels: int = 8
    block: int = 8
    inputs: int = 8
    panel: int = 16
    tile: int = 4

    @property
    def _form(self) -> MinimalFiltering:
        return FILTERINGS[self.tile]

    @property
    def input_channels(self) -> int:
        return self.inputs

    def pack(self, w: Array) -> Array:
        """Weights [channels, inputs, 3, 3], transformed, in panels of output channels."""
        outputs, inputs = w.shape[:2]
        depth, panels = -(-inputs // self.block) * self.block, -(-outputs // self.panel)
        padded = zero_padded(w, (panels * self.panel, depth, *w.shape[2:]))
        packed = np.empty((self._form.products, panels, depth, self.panel), w.dtype)
        self._form.transform_weights(padded, packed.transpose(0, 2, 1, 3))
        return packed

    def unpack(self, w: Array) -> Array:
        points, _, depth, _ = w.shape
        plain = w.transpose(0, 2, 1, 3).reshape(points, depth, -1)
        return self._form.restore_weights(plain)[: self.channels, : self.inputs].astype(w.dtype)
