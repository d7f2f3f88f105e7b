"""Orders the rows of constant weights anew in place of a transposition before them: of x transposed, flattened and
multiplied, as in classifiers trained on channels-last data.
"""

from __future__ import annotations

import math

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.ops import Gemm, MatMul, Reshape, ReshapeLike, Transpose
from glowstone.ops.constant import constant, constant_array

MATRIX_RANK = 2


def fold_transposes_into_weights(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (reorder_rows,))


@rewrite(MatMul, Gemm)
def reorder_rows(builder: Builder, node: Node) -> Value | None:
    """The first axis stays, all others are flattened; no extent may change."""
    flat, w = node.operands[:2]
    moved = operand(flat)
    weights = constant_array(w)
    if flat is None or moved is None or w is None or weights is None or weights.ndim != MATRIX_RANK:
        return None
    if not isinstance(flat.operator, ReshapeLike) or not isinstance(moved.operator, Transpose) or flat.dynamic:
        return None
    x, permutation = operand(moved), moved.operator.permutation
    is_flat = moved.rank > 1 and flat.shape == (moved.shape[0], math.prod(moved.shape[1:]))
    is_transposed = isinstance(node.operator, Gemm) and node.operator.transpose_a
    is_only = builder.graph.has_single_use(flat) and builder.graph.has_single_use(moved)
    if x is None or permutation[0] != 0 or not is_flat or is_transposed or not is_only:
        return None
    rows_first = weights.T if isinstance(node.operator, Gemm) and node.operator.transpose_b else weights
    apart = rows_first.reshape(*moved.shape[1:], rows_first.shape[1])
    order = [int(place) for place in np.argsort(permutation[1:])]
    reordered = np.transpose(apart, (*order, len(order))).reshape(rows_first.shape)
    if rows_first is not weights:
        reordered = reordered.T
    shape = constant(builder, np.array(flat.shape, np.int64))
    straight = builder.emit(Reshape(), x, shape)
    new_weights = constant(builder, np.ascontiguousarray(reordered), w.element)
    return builder.emit(node.operator, straight, new_weights, *node.operands[2:])
