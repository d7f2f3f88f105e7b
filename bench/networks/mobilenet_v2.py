"""MobileNet-V2 (Sandler et al. 2018): inverted residuals with depthwise convolutions and ReLU6."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from networks.writer import NetworkWriter

EXTENT = 224
CLASSES = 1000
STEM, HEAD = 32, 1280
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def build(seed: int = 0, blocks: Sequence[tuple[int, int, int, int]] = BLOCKS) -> onnx.ModelProto:
    """`blocks` are (expansion, filters, repetitions, first stride)."""
    write = NetworkWriter("mobilenet_v2", seed)
    low, high = write.constant(0.0), write.constant(6.0)

    def clipped(x: str) -> str:
        return write.node("Clip", x, low, high)

    x, channels = clipped(write.convolution("x", 3, STEM, 3, stride=2)), STEM
    for expansion, filters, repetitions, first in blocks:
        for index in range(repetitions):
            stride, hidden, y = (first if index == 0 else 1), channels * expansion, x
            if expansion != 1:
                y = clipped(write.convolution(y, channels, hidden, 1))
            y = clipped(write.convolution(y, hidden, hidden, 3, stride=stride, groups=hidden))
            y = write.convolution(y, hidden, filters, 1, gain=0.7)
            x = write.node("Add", x, y) if stride == 1 and channels == filters else y
            channels = filters
    x = clipped(write.convolution(x, channels, HEAD, 1))
    x = write.node("Flatten", write.node("GlobalAveragePool", x))
    return write.image_classifier(x, HEAD, EXTENT, CLASSES)
