"""Local patterns and the one driver that applies them.

A pattern is a function `(builder, node) -> Value | tuple[Value, ...] | None` marked with `@rewrite(Operator, ...)`:
it returns replacements for the node's results, or None where it does not match. It must not edit the graph itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from glowstone.graph.builder import Builder
from glowstone.graph.graph import Graph, Node, Value
from glowstone.graph.operator import Operator, as_tuple
from glowstone.support.budget import tick

Pattern = Callable[[Builder, Node], "Value | tuple[Value, ...] | None"]
PatternType = TypeVar("PatternType", bound=Callable[..., object])


def rewrite(*kinds: type[Operator]) -> Callable[[PatternType], PatternType]:
    """Mark a function as a pattern rooted at operators of these classes (subclasses included)."""

    def mark(function: PatternType) -> PatternType:
        function.kinds = kinds  # type: ignore[attr-defined]
        return function

    return mark


def apply_patterns(graph: Graph, patterns: Sequence[Pattern]) -> bool:
    """Apply patterns until none matches; returns whether anything changed.

    Nodes are visited operands first. After a replacement the new nodes and the users of the new values
    are visited again.
    """
    roots = tuple({kind: None for pattern in patterns for kind in pattern.kinds})  # type: ignore[attr-defined]
    worklist = deque(node for node in graph.nodes if isinstance(node.operator, roots))
    waiting = set(worklist)
    dead: set[Node] = set()
    changed = False
    while worklist:
        tick()
        node = worklist.popleft()
        waiting.discard(node)
        if node in dead or not _is_used(graph, node):
            continue
        for pattern in patterns:
            if not isinstance(node.operator, pattern.kinds):  # type: ignore[attr-defined]
                continue
            replacement = pattern(Builder(graph, node.names), node)
            if replacement is None:
                continue
            values = as_tuple(replacement)
            for old, new in zip(node.results, values, strict=True):
                graph.replace(old, new)
            _bury(graph, node, dead)
            for affected in _affected(values):
                if isinstance(affected.operator, roots) and affected not in waiting and affected not in dead:
                    waiting.add(affected)
                    worklist.append(affected)
            changed = True
            break
    if changed:
        graph.drop_dead_uses()
    return changed


def _is_used(graph: Graph, node: Node) -> bool:
    return any(value.uses or graph.is_output(value) for value in node.results)


def _bury(graph: Graph, node: Node, dead: set[Node]) -> None:
    """Drop the operand uses of a node that nothing needs, and of those that then nothing needs."""
    stack = [node]
    while stack:
        candidate = stack.pop()
        if candidate in dead or _is_used(graph, candidate):
            continue
        dead.add(candidate)
        for index, operand in enumerate(candidate.operands):
            if operand is not None:
                operand.uses.pop((candidate, index), None)
                if operand.node is not None:
                    stack.append(operand.node)


def _affected(values: Iterable[Value]) -> list[Node]:
    """Users of the new values, and the new nodes with their near operands."""
    found: dict[Node, None] = {}
    for value in values:
        if value.node is not None:
            for operand in value.node.present_operands():
                if operand.node is not None:
                    found[operand.node] = None
            found[value.node] = None
        found.update(dict.fromkeys(value.users()))
    return list(found)
