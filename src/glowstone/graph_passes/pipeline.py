"""The order of the graph passes, with the reason for each place."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.graph import Graph
from glowstone.graph_passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from glowstone.graph_passes.eliminate_identities import eliminate_identities
from glowstone.graph_passes.fold_constants import fold_constants
from glowstone.graph_passes.fold_into_weights import fold_into_weights
from glowstone.graph_passes.fold_padding import fold_padding
from glowstone.graph_passes.fold_transposes_into_weights import fold_transposes_into_weights
from glowstone.graph_passes.merge_arithmetic_chains import merge_arithmetic_chains
from glowstone.graph_passes.merge_casts import merge_casts
from glowstone.graph_passes.merge_concats import merge_concats
from glowstone.graph_passes.merge_limits import merge_limits
from glowstone.graph_passes.merge_pads import merge_pads
from glowstone.graph_passes.merge_products import merge_products
from glowstone.graph_passes.merge_rearrangements import merge_rearrangements
from glowstone.graph_passes.merge_reductions import merge_reductions
from glowstone.graph_passes.merge_slices import merge_slices
from glowstone.graph_passes.pack_narrow_constants import pack_narrow_constants
from glowstone.graph_passes.recover_activations import recover_activations
from glowstone.graph_passes.recover_layer_normalization import recover_layer_normalization
from glowstone.graph_passes.recover_low_bit_products import recover_low_bit_products
from glowstone.graph_passes.recover_rms_normalization import recover_rms_normalization
from glowstone.graph_passes.recover_softmax import recover_softmax
from glowstone.graph_passes.replace_gathers import replace_gathers
from glowstone.graph_passes.replace_resizes import replace_resizes
from glowstone.graph_passes.replace_tiles import replace_tiles
from glowstone.graph_passes.replace_transposes import replace_transposes
from glowstone.graph_passes.shrink_convolutions import shrink_convolutions
from glowstone.graph_passes.simplify_arithmetic import simplify_arithmetic
from glowstone.graph_passes.simplify_quantization import simplify_quantization
from glowstone.graph_passes.sink_conversions import sink_conversions
from glowstone.graph_passes.sink_rearrangements import sink_rearrangements

GraphPass = Callable[[Graph], bool]

CANONICAL: tuple[GraphPass, ...] = (
    recover_low_bit_products,  # before folding, which writes weights out as floats
    fold_constants,  # early: patterns below look for constants
    eliminate_identities,  # before patterns, which do not look through identities
    simplify_arithmetic,
    merge_casts,
    eliminate_common_subexpressions,  # so that "the same value" means the same object
    merge_rearrangements,
    merge_slices,
    merge_concats,  # after slices, whose parts it puts together
    merge_pads,
    sink_conversions,  # before quantization, which then meets dequantization
    simplify_quantization,
    merge_limits,  # before activations, which are recognized with their limits as one Clip
    recover_layer_normalization,  # recoveries stand before anything is decomposed or folded
    recover_rms_normalization,
    recover_softmax,
    recover_activations,
    merge_reductions,  # after normalizations, which reduce twice
    replace_gathers,
    replace_tiles,
    replace_resizes,
    sink_rearrangements,  # after recoveries: their operators sink as one
    merge_rearrangements,  # transpositions that sinking brought together
    replace_transposes,  # after merging, which leaves fewer
    fold_transposes_into_weights,
    fold_padding,
    fold_into_weights,
    merge_arithmetic_chains,  # after weights took in what they could
    shrink_convolutions,  # after padding has its final extents
    eliminate_identities,  # slices, reshapes and transpositions that came to nothing
    fold_constants,  # weights that folding made foldable
)
"""On the imported graph."""

LOWERED: tuple[GraphPass, ...] = (
    fold_constants,  # decompositions compute with constants
    eliminate_identities,
    simplify_arithmetic,
    merge_casts,
    eliminate_common_subexpressions,
    merge_rearrangements,
    sink_rearrangements,  # one-dimensional convolutions are planes between reshapes, which keep what follows apart
    eliminate_identities,  # reshapes that meet their inverse
    merge_arithmetic_chains,
    merge_products,  # here Gemm is a product and a sum
    fold_constants,  # constants that merging multiplied or cut
    eliminate_common_subexpressions,
    pack_narrow_constants,  # last: folding would unpack them
)
"""After lowering: lowered nodes are optimized again."""

RELAXED_ONLY = frozenset(
    function.__name__
    for function in (
        fold_into_weights,
        merge_arithmetic_chains,
        merge_products,
        merge_reductions,
        recover_activations,
        recover_layer_normalization,
        recover_low_bit_products,
        recover_rms_normalization,
        recover_softmax,
        replace_resizes,
    )
)
"""Left out under strict numerics: they change the order of roundings."""
