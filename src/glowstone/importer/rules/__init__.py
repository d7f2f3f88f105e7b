"""ONNX import rules, by the same families as the operators."""

from glowstone.importer.rules import (
    attention,
    composed_normalization,
    constant,
    convolution,
    elementwise,
    indexing,
    linear,
    normalization,
    pooling,
    quantization,
    rearrangement,
    reduction,
    resize,
    scatter,
    selection,
    shape,
)

__all__ = [
    "attention",
    "composed_normalization",
    "constant",
    "convolution",
    "elementwise",
    "indexing",
    "linear",
    "normalization",
    "pooling",
    "quantization",
    "rearrangement",
    "reduction",
    "resize",
    "scatter",
    "selection",
    "shape",
]
