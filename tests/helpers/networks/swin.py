"""Swin (Liu et al. 2021): attention within windows that every second block shifts, and merging of patches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from networks.writer import OPSET, NetworkWriter

PATCH, EXPANSION = 4, 4
MASKED = -100.0


def build(
    width: int = 48,
    heads: int = 3,
    window: int = 4,
    extent: int = 64,
    stages: Sequence[int] = (2, 2),
    seed: int = 0,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """image [n, 3, extent, extent] to features [n, tokens, channels]; `stages` are numbers of blocks."""
    write = NetworkWriter("swin", seed, opset)
    side, channels = extent // PATCH, width
    x = write.convolution("image", 3, width, PATCH, stride=PATCH, pad=0, gain=1.0)
    batch = write.extent(x, 0)
    x = write.node("Transpose", write.reshape(x, batch, width, -1), perm=[0, 2, 1])
    x = write.layer_normalization(x, width)
    for stage, blocks in enumerate(stages):
        if stage:
            x = _merge_patches(write, x, batch, side, channels)
            side, channels, heads = side // 2, 2 * channels, 2 * heads
        for index in range(blocks):
            shift = window // 2 if index % 2 and side > window else 0
            x = _Block(write, batch, side, channels, heads, window, shift).build(x)
    x = write.layer_normalization(x, channels)
    return write.float_model({"image": ("n", 3, extent, extent)}, {"features": (x, ("n", side * side, channels))})


def _merge_patches(write: NetworkWriter, x: str, batch: str, side: int, channels: int) -> str:
    """Every two by two tokens become one of twice the channels."""
    image = write.reshape(x, batch, side, side, channels)
    parts = []
    for column in (0, 1):
        for row in (0, 1):
            rows = write.slice(image, 1, row, side, 2)
            parts.append(write.slice(rows, 2, column, side, 2))
    joined = write.reshape(write.node("Concat", *parts, axis=-1), batch, -1, 4 * channels)
    normal = write.layer_normalization(joined, 4 * channels)
    return write.node("MatMul", normal, write.normal(4 * channels, 2 * channels, deviation=(4 * channels) ** -0.5))


class _Block:
    """One block at one place of the network."""

    def __init__(
        self, write: NetworkWriter, batch: str, side: int, channels: int, heads: int, window: int, shift: int
    ) -> None:
        self._write = write
        self._batch = batch
        self._side = side
        self._channels = channels
        self._heads = heads
        self._window = window
        self._shift = shift

    def build(self, x: str) -> str:
        write, channels, side = self._write, self._channels, self._side
        image = write.reshape(write.layer_normalization(x, channels), self._batch, side, side, channels)
        image = self._roll(image, self._shift)
        windows = self._attention(self._windows(image))
        image = self._roll(self._image(windows), (side - self._shift) % side)
        x = write.node("Add", x, write.reshape(image, self._batch, side * side, channels))
        hidden = write.linear(write.layer_normalization(x, channels), channels, EXPANSION * channels)
        return write.node("Add", x, write.linear(write.gelu(hidden), EXPANSION * channels, channels, gain=0.5))

    def _roll(self, image: str, shift: int) -> str:
        """The image with its first `shift` rows and columns behind the others."""
        if shift == 0:
            return image
        for axis in (1, 2):
            tail = self._write.slice(image, axis, shift, np.iinfo(np.int64).max)
            image = self._write.node("Concat", tail, self._write.slice(image, axis, 0, shift), axis=axis)
        return image

    def _windows(self, image: str) -> str:
        """[batch, side, side, channels] to [windows, tokens, channels]."""
        write, window, count = self._write, self._window, self._side // self._window
        split = write.reshape(image, self._batch, count, window, count, window, self._channels)
        return write.reshape(
            write.node("Transpose", split, perm=[0, 1, 3, 2, 4, 5]), -1, window * window, self._channels
        )

    def _image(self, windows: str) -> str:
        """The reverse of `_windows`."""
        write, window, count = self._write, self._window, self._side // self._window
        split = write.reshape(windows, -1, count, count, window, window, self._channels)
        turned = write.node("Transpose", split, perm=[0, 1, 3, 2, 4, 5])
        return write.reshape(turned, -1, self._side, self._side, self._channels)

    def _attention(self, x: str) -> str:
        write, heads, channels = self._write, self._heads, self._channels
        tokens, size = self._window**2, channels // heads
        joined = write.reshape(write.linear(x, channels, 3 * channels), -1, tokens, 3, heads, size)
        turned = write.node("Transpose", joined, perm=[2, 0, 3, 1, 4])
        query, key, value = (
            write.node("Gather", turned, write.constant(index, np.int64), axis=0) for index in range(3)
        )
        query = write.node("Mul", query, write.constant(size**-0.5))
        scores = write.node("MatMul", query, write.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = write.node("Add", scores, self._position_bias())
        if self._shift:
            scores = self._masked(scores)
        mixed = write.node("MatMul", write.node("Softmax", scores, axis=-1), value)
        merged = write.reshape(write.node("Transpose", mixed, perm=[0, 2, 1, 3]), -1, tokens, channels)
        return write.linear(merged, channels, channels, gain=0.5)

    def _position_bias(self) -> str:
        """[1, heads, tokens, tokens], gathered from a table of relative places."""
        write, window, heads = self._write, self._window, self._heads
        span = 2 * window - 1
        places = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij")).reshape(2, -1)
        relative = places[:, :, None] - places[:, None, :] + window - 1
        index = write.parameter((relative[0] * span + relative[1]).reshape(-1).astype(np.int64))
        rows = write.node("Gather", write.normal(span * span, heads, deviation=0.5), index, axis=0)
        table = write.reshape(rows, window * window, window * window, heads)
        return write.unsqueeze(write.node("Transpose", table, perm=[2, 0, 1]), 0)

    def _masked(self, scores: str) -> str:
        """Tokens that the shift brought together from opposite edges do not see each other."""
        write, window, count = self._write, self._window, self._side // self._window
        tokens, windows = window * window, count * count
        regions = np.zeros((self._side, self._side), int)
        edges = [slice(0, -window), slice(-window, -self._shift), slice(-self._shift, None)]
        for number, (rows, columns) in enumerate((rows, columns) for rows in edges for columns in edges):
            regions[rows, columns] = number
        parts = regions.reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(windows, tokens)
        mask = np.where(parts[:, None, :] != parts[:, :, None], np.float32(MASKED), np.float32(0))
        split = write.reshape(scores, -1, windows, self._heads, tokens, tokens)
        added = write.node("Add", split, write.parameter(mask[None, :, None].astype(np.float32)))
        return write.reshape(added, -1, self._heads, tokens, tokens)
