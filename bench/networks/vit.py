"""ViT-S/16 (Dosovitskiy et al. 2020; Touvron et al. 2020): an image transformer over patches of 16 x 16 pixels."""

from __future__ import annotations

import numpy as np
import onnx

from networks.writer import NetworkWriter

EXTENT = 224
CLASSES = 1000
PATCH = 16
WIDTH, DEPTH, HEADS = 384, 12, 6
EXPANSION = 4


def build(seed: int = 0, width: int = WIDTH, depth: int = DEPTH, heads: int = HEADS) -> onnx.ModelProto:
    """One image in, logits from the class token out."""
    write = NetworkWriter("vit", seed)
    patches = (EXTENT // PATCH) ** 2
    length = patches + 1
    x = write.convolution("x", 3, width, PATCH, stride=PATCH, pad=0, gain=1.0)
    x = write.node("Transpose", write.node("Reshape", x, write.integers(0, width, patches)), perm=[0, 2, 1])
    x = write.node("Concat", write.normal(1, 1, width, deviation=0.5), x, axis=1)
    x = write.node("Add", x, write.normal(1, length, width, deviation=0.2))
    for _ in range(depth):
        attended = write.self_attention(write.layer_normalization(x, width), width, heads, length)
        x = write.node("Add", x, attended)
        hidden = write.gelu(write.linear(write.layer_normalization(x, width), width, EXPANSION * width))
        x = write.node("Add", x, write.linear(hidden, EXPANSION * width, width, gain=0.5))
    x = write.node("Gather", write.layer_normalization(x, width), write.parameter(np.array(0, np.int64)), axis=1)
    return write.image_classifier(x, width, EXTENT, CLASSES)
