"""ONNX import rules, by the same families as the operators."""

from glowstone.importer.rules import (
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
    selection,
    scatter,
    shape,
)

__all__ = [
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
    "selection",
    "scatter",
    "shape",
]
