"""Removes operators that change nothing: Identity, casts to the same type, transpositions that keep the order,
reshapes, slices and expansions to the same shape where no shape is dynamic.
"""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Cast, Expand, Identity, ReshapeLike, Slice, Transpose


def eliminate_identities(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (drop_identity, drop_cast, drop_transpose, drop_static_reshape))


@rewrite(Identity)
def drop_identity(builder: Builder, node: Node) -> Value | None:
    return node.operands[0]


@rewrite(Cast)
def drop_cast(builder: Builder, node: Node) -> Value | None:
    (x,) = node.operands
    assert x is not None
    return x if x.type == node.result.type else None


@rewrite(Transpose)
def drop_transpose(builder: Builder, node: Node) -> Value | None:
    assert isinstance(node.operator, Transpose)
    permutation = node.operator.permutation
    return node.operands[0] if permutation == tuple(range(len(permutation))) else None


@rewrite(ReshapeLike, Slice, Expand)
def drop_static_reshape(builder: Builder, node: Node) -> Value | None:
    """The same shape by coincidence at the reference shape proves nothing, so dynamic values stay."""
    x = node.operands[0]
    assert x is not None
    if x.dynamic or node.result.dynamic or x.type != node.result.type:
        return None
    if isinstance(node.operator, Slice) and any(
        kept != range(extent) for kept, extent in zip(node.operator.known_ranges(*node.operands), x.shape, strict=True)
    ):
        return None
    return x
