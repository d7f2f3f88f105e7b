"""EfficientNet-B0 (Tan, Le 2019): inverted residuals with squeeze-and-excite and SiLU."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from networks.writer import NetworkWriter

EXTENT = 224
CLASSES = 1000
STEM, HEAD = 32, 1280
SQUEEZE = 4  # the block's input channels over the squeezed ones
BLOCKS = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def build(seed: int = 0, blocks: Sequence[tuple[int, int, int, int, int]] = BLOCKS) -> onnx.ModelProto:
    """`blocks` are (expansion, filters, repetitions, first stride, kernel)."""
    write = NetworkWriter("efficientnet", seed)
    x, channels = write.silu(write.convolution("x", 3, STEM, 3, stride=2)), STEM
    for expansion, filters, repetitions, first, kernel in blocks:
        for index in range(repetitions):
            stride, hidden, y = (first if index == 0 else 1), channels * expansion, x
            if expansion != 1:
                y = write.silu(write.convolution(y, channels, hidden, 1))
            y = write.silu(write.convolution(y, hidden, hidden, kernel, stride=stride, groups=hidden))
            y = _squeeze_and_excite(write, y, hidden, channels // SQUEEZE)
            y = write.convolution(y, hidden, filters, 1, gain=1.0)
            x = write.node("Add", y, x) if stride == 1 and channels == filters else y
            channels = filters
    x = write.silu(write.convolution(x, channels, HEAD, 1))
    x = write.node("Flatten", write.node("GlobalAveragePool", x))
    return write.image_classifier(x, HEAD, EXTENT, CLASSES)


def _squeeze_and_excite(write: NetworkWriter, x: str, channels: int, squeezed: int) -> str:
    pooled = write.node("GlobalAveragePool", x)
    reduced = write.silu(write.convolution(pooled, channels, squeezed, 1))
    gate = write.node("Sigmoid", write.convolution(reduced, squeezed, channels, 1))
    return write.node("Mul", x, gate)
