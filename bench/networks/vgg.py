"""VGG (Simonyan, Zisserman 2014): 3 x 3 convolutions in stages with pooling between, then three wide layers."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from networks.writer import NetworkWriter

EXTENT = 224
CLASSES = 1000
VGG19 = ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))
HIDDEN = 4096


def build(seed: int = 0, stages: Sequence[tuple[int, int]] = VGG19, hidden: int = HIDDEN) -> onnx.ModelProto:
    """`stages` are (convolutions, channels) between the poolings."""
    write = NetworkWriter("vgg", seed)
    x, channels, extent = "x", 3, EXTENT
    for depth, filters in stages:
        for _ in range(depth):
            x = write.node("Relu", write.convolution(x, channels, filters, 3))
            channels = filters
        x = write.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        extent //= 2
    x = write.node("Flatten", x)
    x = write.node("Relu", write.gemm(x, channels * extent * extent, hidden, gain=2**0.5))
    x = write.node("Relu", write.gemm(x, hidden, hidden, gain=2**0.5))
    return write.image_classifier(x, hidden, EXTENT, CLASSES)
