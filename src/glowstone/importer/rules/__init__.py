"""ONNX import rules, by the same families as the operators."""

from glowstone.importer.rules import (
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
    scatter,
    selection,
    shape,
)

__all__ = [
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
    "scatter",
    "selection",
    "shape",
]
