"""Blocked data and packed weights for tests, and convolution in float64, written without the package's own code."""

from __future__ import annotations

import numpy as np

from glowstone.lir import Buffer, BufferKind, View
from glowstone.types import ElementType


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def block(plain: np.ndarray, lanes: int) -> np.ndarray:
    """[N, C, H, W] to [N, blocks, H, W, lanes], zeros behind the last channel."""
    batch, channels, height, width = plain.shape
    blocks = -(-channels // lanes)
    blocked = np.zeros((batch, blocks, height, width, lanes), plain.dtype)
    for channel in range(channels):
        blocked[:, channel // lanes, :, :, channel % lanes] = plain[:, channel]
    return blocked


def unblock(blocked: np.ndarray, channels: int) -> np.ndarray:
    """The inverse of `block`."""
    lanes = blocked.shape[-1]
    return np.stack([blocked[:, c // lanes, :, :, c % lanes] for c in range(channels)], axis=1)


def padding_lanes(blocked: np.ndarray, channels: int) -> np.ndarray:
    """All elements that belong to no channel."""
    lanes = blocked.shape[-1]
    unused = range(channels, blocked.shape[1] * lanes)
    return np.array([blocked[:, c // lanes, :, :, c % lanes] for c in unused])


def pack_dense(weights: np.ndarray, lanes: int, panel: int, groups: int = 1) -> np.ndarray:
    """[O, I / groups, KH, KW] to [panels, in blocks, KH, KW, lanes in, panel, lanes out]."""
    outputs, inputs, height, width = weights.shape
    group_outputs = outputs // groups
    panels = -(-group_outputs // (panel * lanes))
    packed = np.zeros((groups * panels, -(-inputs // lanes), height, width, lanes, panel, lanes), np.float32)
    for output in range(outputs):
        group, within = divmod(output, group_outputs)
        number, rest = divmod(within, panel * lanes)
        for channel in range(inputs):
            packed[group * panels + number, channel // lanes, :, :, channel % lanes, rest // lanes, rest % lanes] = (
                weights[output, channel]
            )
    return packed


def pack_stem(weights: np.ndarray, lanes: int, panel: int) -> np.ndarray:
    """[O, I, KH, KW] to [panels, I, KH, KW, panel, lanes]."""
    outputs, inputs, height, width = weights.shape
    packed = np.zeros((-(-outputs // (panel * lanes)), inputs, height, width, panel, lanes), np.float32)
    for output in range(outputs):
        number, rest = divmod(output, panel * lanes)
        packed[number, :, :, :, rest // lanes, rest % lanes] = weights[output]
    return packed


def pack_depthwise(weights: np.ndarray, lanes: int) -> np.ndarray:
    """[C, KH, KW] to [blocks, KH, KW, lanes]."""
    channels, height, width = weights.shape
    packed = np.zeros((-(-channels // lanes), height, width, lanes), np.float32)
    for channel in range(channels):
        packed[channel // lanes, :, :, channel % lanes] = weights[channel]
    return packed


def convolve(x, weights, strides, dilations, pads, groups=1) -> np.ndarray:
    """ONNX Conv in float64; pads are top, left, bottom, right."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    reach = [(weights.shape[2 + axis] - 1) * dilations[axis] + 1 for axis in (0, 1)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    inputs = np.split(windows, groups, axis=1)
    filters = np.split(weights.astype(np.float64), groups, axis=0)
    sums = [np.einsum("nihwkl,oikl->nohw", part, w) for part, w in zip(inputs, filters, strict=True)]
    return np.concatenate(sums, axis=1)


def buffer_for(array: np.ndarray, name: str = "b") -> Buffer:
    return Buffer(name, BufferKind.ACTIVATION, ElementType.F32, array.shape)


class Operands:
    """Views with the storages behind them, collected one by one."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self.storages: dict[Buffer, np.ndarray] = {}

    def add(self, array: np.ndarray) -> View:
        """A whole new buffer with this content."""
        buffer = buffer_for(array)
        self.storages[buffer] = np.ascontiguousarray(array).reshape(-1)
        self.views.append(buffer.view())
        return self.views[-1]

    def add_view(self, view: View) -> None:
        """A window on a buffer that is there already."""
        self.views.append(view)
