"""The graphs of a file: that of the model, and those that are attributes of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nested_graphs(graph: Any) -> Iterator[Any]:
    """The graph and all bodies in it, at any depth."""
    yield graph
    for node in graph.node:
        for body in bodies_of(node):
            yield from nested_graphs(body)


def bodies_of(node: Any) -> Iterator[Any]:
    """The graphs that are attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def tensors(graph: Any) -> Iterator[Any]:
    """The initializers, and the tensors that are attributes, of the graph and of all bodies in it."""
    for part in nested_graphs(graph):
        yield from part.initializer
        for node in part.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
