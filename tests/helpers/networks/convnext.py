"""ConvNeXt (Liu et al. 2022): depthwise convolutions, and multilayer perceptrons over channels that stand last."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from networks.writer import NetworkWriter

KERNEL, PATCH, EXPANSION = 7, 4, 4
CLASSES = 100
PRE_NORMALIZATION_OPSET = 16


def build(
    stages: Sequence[tuple[int, int]] = ((1, 48), (2, 96)), seed: int = 0, opset: int = PRE_NORMALIZATION_OPSET
) -> onnx.ModelProto:
    """image [n, 3, h, w] to logits [n, CLASSES]; `stages` are (blocks, channels). Normalization is spelled out."""
    write = NetworkWriter("convnext", seed, opset)
    x, channels = write.convolution("image", 3, stages[0][1], PATCH, stride=PATCH, pad=0, gain=1.0), stages[0][1]
    x = _channels_first_normalization(write, x, channels)
    for index, (blocks, filters) in enumerate(stages):
        if index:
            x = _channels_first_normalization(write, x, channels)
            x = write.convolution(x, channels, filters, 2, stride=2, pad=0, gain=1.0)
            channels = filters
        for _ in range(blocks):
            x = _block(write, x, channels)
    pooled = write.reduce_mean(write.reduce_mean(x, -1), -2)
    features = write.layer_normalization(write.node("Flatten", pooled, axis=1), channels, epsilon=1e-6)
    logits = write.linear(features, channels, CLASSES)
    return write.float_model({"image": ("n", 3, "h", "w")}, {"logits": (logits, ("n", CLASSES))})


def _block(write: NetworkWriter, x: str, channels: int) -> str:
    y = write.convolution(x, channels, channels, KERNEL, groups=channels, gain=1.0)
    y = write.layer_normalization(write.node("Transpose", y, perm=[0, 2, 3, 1]), channels, epsilon=1e-6)
    y = write.linear(write.gelu(write.linear(y, channels, EXPANSION * channels)), EXPANSION * channels, channels)
    y = write.node("Mul", write.normal(channels, deviation=0.3), y)
    return write.node("Add", x, write.node("Transpose", y, perm=[0, 3, 1, 2]))


def _channels_first_normalization(write: NetworkWriter, x: str, channels: int) -> str:
    """Layer normalization over axis 1, as the published code spells it."""
    centred = write.node("Sub", x, write.reduce_mean(x, 1))
    variance = write.reduce_mean(write.node("Pow", centred, write.constant(2.0)), 1)
    deviation = write.node("Sqrt", write.node("Add", variance, write.constant(1e-6)))
    scaled = write.node("Mul", write.uniform(channels, 1, 1), write.node("Div", centred, deviation))
    return write.node("Add", scaled, write.normal(channels, 1, 1, deviation=0.1))
