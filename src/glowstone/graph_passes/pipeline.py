"""The order of the graph passes, with the reason for each place."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.graph import Graph
from glowstone.graph_passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from glowstone.graph_passes.eliminate_identities import eliminate_identities
from glowstone.graph_passes.fold_constants import fold_constants
from glowstone.graph_passes.fold_into_weights import fold_into_weights
from glowstone.graph_passes.fold_padding import fold_padding
from glowstone.graph_passes.merge_rearrangements import merge_rearrangements
from glowstone.graph_passes.recover_layer_normalization import recover_layer_normalization

GraphPass = Callable[[Graph], bool]

CANONICAL: tuple[GraphPass, ...] = (
    fold_constants,  # first: patterns below look for constants
    eliminate_identities,  # before patterns, which do not look through identities
    eliminate_common_subexpressions,  # so that "the same value" means the same object
    merge_rearrangements,
    fold_padding,  # zeros around an image, before its convolution gets its final form
    recover_layer_normalization,  # before anything is decomposed
    fold_into_weights,
    fold_constants,  # weights that folding made foldable
)
"""On the imported graph."""

LOWERED: tuple[GraphPass, ...] = (
    fold_constants,  # decompositions compute with constants
    eliminate_identities,
    eliminate_common_subexpressions,
    merge_rearrangements,
)
"""After lowering: lowered nodes are optimized again."""

RELAXED_ONLY = frozenset({fold_into_weights.__name__, recover_layer_normalization.__name__})
"""Left out under strict numerics: they change the order of roundings."""
