"""Lowering: replace operators by their decompositions until every node is legal for the backend."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.errors import UnsupportedError
from glowstone.graph import Builder, Graph, Node, Value, as_tuple

IsLegal = Callable[[Node], bool]


def decompose(graph: Graph, is_legal: IsLegal) -> bool:
    """Decompose nodes that are not legal, again and again; returns whether anything changed."""
    changed = False
    pending = graph.nodes
    while pending:
        node = pending.pop()
        if is_legal(node):
            continue
        replacement = node.operator.decompose(Builder(graph, node.names), *node.operands)
        if replacement is None:
            continue
        values: tuple[Value, ...] = as_tuple(replacement)
        before = set(node.operands)
        for old, new in zip(node.results, values, strict=True):
            graph.replace(old, new)
        pending.extend(_new_nodes(values, before))
        changed = True
    if changed:
        graph.drop_dead_uses()
    return changed


def _new_nodes(values: tuple[Value, ...], before: set[Value | None]) -> list[Node]:
    """Nodes between the old operands and the new results."""
    found: dict[Node, None] = {}
    stack = [value.node for value in values if value not in before and value.node is not None]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack.extend(
                operand.node
                for operand in node.present_operands()
                if operand not in before and operand.node is not None
            )
    return list(found)


def check_legal(graph: Graph, is_legal: IsLegal, backend: str) -> None:
    """Refuse a graph with nodes that the backend cannot run, all of them at once.

    Raises:
        UnsupportedError: lists operators and element types.
    """
    bad: dict[str, Node] = {}
    for node in (node for part in graph.nested() for node in part.nodes):
        if not is_legal(node):
            types = ", ".join(str(operand.type.element) for operand in node.present_operands())
            bad.setdefault(f"{node.operator.name}({types})", node)
    if bad:
        listed = ", ".join(sorted(bad))
        raise UnsupportedError(
            f"backend {backend} does not support: {listed}",
            node="; ".join(node.names[0] if node.names else "?" for _, node in sorted(bad.items())),
            operator=listed,
        )
