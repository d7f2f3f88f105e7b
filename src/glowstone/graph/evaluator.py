"""Runs a graph by the reference meaning of its operators. For tests, folding and `compare`; never at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glowstone.graph.graph import Graph, Node, Value

Array = np.ndarray[Any, np.dtype[Any]]


def evaluate_graph(
    graph: Graph, inputs: Mapping[str, Array], observe: Callable[[Node, tuple[Array, ...]], None] | None = None
) -> dict[str, Array]:
    """Outputs by name. `observe` is called after every node with its results."""
    values: dict[Value, Array] = {value: np.asarray(inputs[value.name]) for value in graph.inputs}
    for node in graph.nodes:
        operands = [values[operand] if operand is not None else None for operand in node.operands]
        results = node.operator.evaluate(*operands)
        for value, array in zip(node.results, results, strict=True):
            values[value] = np.asarray(array)
        if observe is not None:
            observe(node, results)
    return {name: values[value] for name, value in zip(graph.output_names, graph.outputs, strict=True)}
