"""Merges nodes that compute the same thing: equal operators on the same operands."""

from __future__ import annotations

from glowstone.graph import Graph, Node, Operator, Value


def eliminate_common_subexpressions(graph: Graph) -> bool:
    """Keep the first of equal nodes."""
    first: dict[tuple[Operator, tuple[Value | None, ...]], Node] = {}
    changed = False
    for node in graph.nodes:
        operands = node.operands
        if node.operator.commutative:
            operands = tuple(sorted(operands, key=id))
        kept = first.setdefault((node.operator, operands), node)
        if kept is not node:
            for old, new in zip(node.results, kept.results, strict=True):
                graph.replace(old, new)
            changed = True
    if changed:
        graph.drop_dead_uses()
    return changed
