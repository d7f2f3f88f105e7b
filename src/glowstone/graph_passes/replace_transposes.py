"""Replaces transpositions that move only axes of one element by reshapes, which move no data."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Reshape, Transpose
from glowstone.ops.constant import constant


def replace_transposes(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (transpose_to_reshape,))


@rewrite(Transpose)
def transpose_to_reshape(builder: Builder, node: Node) -> Value | None:
    """Not where a shape is dynamic: another one may have more elements along those axes."""
    (x,) = node.operands
    assert x is not None
    assert isinstance(node.operator, Transpose)
    moved = [axis for axis in node.operator.permutation if x.shape[axis] != 1]
    if x.dynamic or moved != sorted(moved) or 0 in x.shape:
        return None
    return builder.emit(Reshape(), x, constant(builder, np.array(node.result.shape, np.int64)))
