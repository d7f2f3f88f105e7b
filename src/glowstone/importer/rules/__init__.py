"""ONNX import rules, by the same families as the operators."""

from glowstone.importer.rules import (
    constant,
    convolution,
    elementwise,
    indexing,
    linear,
    normalization,
    pooling,
    rearrangement,
    reduction,
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
    "rearrangement",
    "reduction",
    "shape",
]
