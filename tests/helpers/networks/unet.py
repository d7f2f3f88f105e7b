"""U-Net (Ronneberger et al. 2015): down by pooling, up by transposed convolution, with skips."""

from __future__ import annotations

import onnx

from networks.writer import OPSET, NetworkWriter

CLASSES = 3


def build(depth: int = 4, width: int = 16, seed: int = 0, opset: int = OPSET) -> onnx.ModelProto:
    """image [n, 3, h, w] to logits [n, CLASSES, h, w]; h and w are multiples of 2 ** depth."""
    write = NetworkWriter("unet", seed, opset)
    x, channels, skips = "image", 3, []
    for level in range(depth):
        x = _double_convolution(write, x, channels, width << level)
        channels = width << level
        skips.append(x)
        x = write.node("MaxPool", x, ceil_mode=0, kernel_shape=[2, 2], pads=[0, 0, 0, 0], strides=[2, 2])
    x = _double_convolution(write, x, channels, 2 * channels)
    channels *= 2
    for skip in reversed(skips):
        x = _upsample(write, x, channels, channels // 2)
        x = _double_convolution(write, write.node("Concat", skip, x, axis=1), channels, channels // 2)
        channels //= 2
    logits = write.convolution(x, channels, CLASSES, 1, gain=1.0)
    return write.float_model({"image": ("n", 3, "h", "w")}, {"logits": (logits, ("n", CLASSES, "h", "w"))})


def _double_convolution(write: NetworkWriter, x: str, channels: int, filters: int) -> str:
    for inner in (channels, filters):
        x = write.convolution(x, inner, filters, 3, bias=False)
        x = write.node("Relu", write.batch_normalization(x, filters))
    return x


def _upsample(write: NetworkWriter, x: str, channels: int, filters: int) -> str:
    weights = write.normal(channels, filters, 2, 2, deviation=channels**-0.5)
    return write.node(
        "ConvTranspose", x, weights, write.normal(filters, deviation=0.1), kernel_shape=[2, 2], strides=[2, 2]
    )
