"""ConvNeXt-T (Liu et al. 2022): 7 x 7 depthwise convolutions and channels-last multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from networks.writer import NetworkWriter

EXTENT = 224
CLASSES = 1000
STAGES = ((3, 96), (3, 192), (9, 384), (3, 768))
PATCH = 4
KERNEL = 7
EXPANSION = 4


def build(seed: int = 0, stages: Sequence[tuple[int, int]] = STAGES) -> onnx.ModelProto:
    """`stages` are (blocks, channels)."""
    write = NetworkWriter("convnext", seed)
    x, channels = "x", 3
    for index, (depth, filters) in enumerate(stages):
        if index == 0:
            x = write.convolution(x, channels, filters, PATCH, stride=PATCH, pad=0, gain=1.0)
            x = _channel_normalization(write, x, filters)
        else:
            x = _channel_normalization(write, x, channels)
            x = write.convolution(x, channels, filters, 2, stride=2, pad=0, gain=1.0)
        channels = filters
        for _ in range(depth):
            x = _block(write, x, channels)
    x = _channel_normalization(write, write.node("GlobalAveragePool", x), channels)
    return write.image_classifier(write.node("Flatten", x), channels, EXTENT, CLASSES)


def _block(write: NetworkWriter, x: str, channels: int) -> str:
    y = write.convolution(x, channels, channels, KERNEL, groups=channels, gain=1.0)
    y = write.layer_normalization(write.node("Transpose", y, perm=[0, 2, 3, 1]), channels)
    y = write.gelu(write.linear(y, channels, EXPANSION * channels))
    y = write.linear(y, EXPANSION * channels, channels)
    y = write.node("Mul", write.normal(channels, 1, 1, deviation=0.3), write.node("Transpose", y, perm=[0, 3, 1, 2]))
    return write.node("Add", y, x)


def _channel_normalization(write: NetworkWriter, x: str, channels: int) -> str:
    """Layer normalization over the channels of an image."""
    last = write.layer_normalization(write.node("Transpose", x, perm=[0, 2, 3, 1]), channels)
    return write.node("Transpose", last, perm=[0, 3, 1, 2])
