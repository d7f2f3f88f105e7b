"""Generation rules of the operators that hold for every backend, by family."""

from glowstone.irgen.rules.table import RULES, generates

from glowstone.irgen.rules import (  # isort: skip
    elementwise,
    indexing,
    linear,
    normalization,
    rearrangement,
    selection,
    resize,
    scatter,
    shape,
    window,
)

__all__ = [
    "RULES",
    "elementwise",
    "generates",
    "indexing",
    "linear",
    "normalization",
    "rearrangement",
    "resize",
    "scatter",
    "selection",
    "shape",
    "window",
]
