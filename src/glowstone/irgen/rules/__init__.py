"""Generation rules of the operators that hold for every backend, by family."""

from glowstone.irgen.rules.table import RULES, generates

from glowstone.irgen.rules import (  # isort: skip
    creation,
    determinant,
    elementwise,
    indexing,
    linear,
    linear_recurrence,
    normalization,
    rearrangement,
    recurrent,
    selection,
    resize,
    sampling,
    scatter,
    shape,
    window,
)

__all__ = [
    "RULES",
    "creation",
    "determinant",
    "elementwise",
    "generates",
    "indexing",
    "linear",
    "linear_recurrence",
    "normalization",
    "rearrangement",
    "recurrent",
    "resize",
    "sampling",
    "scatter",
    "selection",
    "shape",
    "window",
]
