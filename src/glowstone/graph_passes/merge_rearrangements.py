"""Joins neighbouring rearrangements: transpose of transpose, reshape of reshape."""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Reshape, ReshapeLike, Transpose


def merge_rearrangements(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (merge_transposes, merge_reshapes))


@rewrite(Transpose)
def merge_transposes(builder: Builder, node: Node) -> Value | None:
    (x,) = node.operands
    assert x is not None
    assert isinstance(node.operator, Transpose)
    if not isinstance(x.operator, Transpose) or x.node is None:
        return None
    outer, inner = node.operator.permutation, x.operator.permutation
    return builder.emit(Transpose(tuple(inner[axis] for axis in outer)), x.node.operands[0])


@rewrite(Reshape)
def merge_reshapes(builder: Builder, node: Node) -> Value | None:
    """A reshape of something row-major in x's order reads x itself, unless a 0 in its shape names what is between."""
    between, shape = node.operands
    assert between is not None
    assert shape is not None
    assert isinstance(node.operator, Reshape)
    if not isinstance(between.operator, ReshapeLike) or between.node is None or shape.known is None:
        return None
    if 0 in shape.known or shape.dynamic:
        return None
    return builder.emit(Reshape(node.operator.allow_zero), between.node.operands[0], shape)
