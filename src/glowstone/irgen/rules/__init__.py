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
    regions,
    resize,
    sampling,
    scatter,
    search,
    shape,
    window,
    tensor_scatter,
    trees,
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
    "regions",
    "resize",
    "sampling",
    "scatter",
    "search",
    "selection",
    "shape",
    "tensor_scatter",
    "trees",
    "window",
]
