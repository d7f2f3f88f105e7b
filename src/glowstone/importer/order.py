"""Nodes in an order in which each comes after those it reads: files need not have one, though ONNX asks for it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from glowstone.importer.bodies import bodies_of, nested_graphs


def sort_nodes(graph: Any) -> None:
    """Sort the nodes of a graph and of its bodies, in place, where one reads what only a later one computes.

    Of nodes that are ready the first of the file goes first. Nodes on a cycle, and behind one, keep their places at the
    end: the check of the structure refuses them.
    """
    for node in graph.node:
        for body in bodies_of(node):
            sort_nodes(body)
    if _reads_only_before(graph):
        return
    nodes = list(graph.node)
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    sources = [{makers[name] for name in names_read(node) if name in makers} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for index, indices in enumerate(sources):
        for source in indices:
            readers[source].append(index)
    waiting = [len(indices) for indices in sources]
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    placed = set(order)
    order += [index for index in range(len(nodes)) if index not in placed]
    copies = [type(nodes[index]).FromString(nodes[index].SerializeToString()) for index in order]
    del graph.node[:]
    graph.node.extend(copies)


def is_sorted(graph: Any) -> bool:
    """Whether each node of a graph, and of its bodies, comes after those it reads."""
    return all(_reads_only_before(part) for part in nested_graphs(graph))


def _reads_only_before(graph: Any) -> bool:
    computed = {name for node in graph.node for name in node.output}
    defined = {entry.name for entry in (*graph.input, *graph.initializer)}
    for node in graph.node:
        if any(name in computed and name not in defined for name in names_read(node)):
            return False
        defined.update(node.output)
    return True


def names_read(node: Any) -> Iterator[str]:
    """Names that a node reads, with those that its bodies read from around."""
    yield from (name for name in node.input if name)
    for body in bodies_of(node):
        yield from _free_names(body)


def _free_names(graph: Any) -> Iterable[str]:
    defined = {entry.name for entry in (*graph.input, *graph.initializer)}
    free: dict[str, None] = {}
    for node in graph.node:
        free.update((name, None) for name in names_read(node) if name not in defined)
        defined.update(node.output)
    free.update((entry.name, None) for entry in graph.output if entry.name not in defined)
    return free
