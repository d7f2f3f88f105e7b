"""A graph as a flat record that pickle can take: no chain of objects to recurse along."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import dataclass

from glowstone.graph.builder import Builder
from glowstone.graph.graph import Graph, Value
from glowstone.graph.operator import Array, Operator
from glowstone.types import Dimension, TensorType

FlatNode = tuple[Operator, tuple[int | None, ...], tuple[str, ...]]
"""Operator, numbers of the operand values (inputs first, then results in order), ONNX names."""


@dataclass(frozen=True)
class FlatGraph:
    """What `flatten` gives and `unflatten` takes."""

    name: str
    inputs: tuple[tuple[str, TensorType, tuple[Dimension, ...]], ...]
    nodes: tuple[FlatNode, ...]
    outputs: tuple[tuple[str, int, tuple[Dimension, ...]], ...]
    known: tuple[tuple[Array | None, bool], ...]
    """Per input what is known of it, and whether it is dynamic; a body has these from its operands."""
    assumptions: tuple[tuple[int, bool], ...]


def flatten(graph: Graph) -> FlatGraph:
    """The graph without its types, which `unflatten` infers again."""
    numbers: dict[Value, int] = {value: number for number, value in enumerate(graph.inputs)}
    nodes: list[FlatNode] = []
    for node in graph.nodes:
        operands = tuple(None if operand is None else numbers[operand] for operand in node.operands)
        nodes.append((node.operator, operands, node.names))
        for value in node.results:
            numbers[value] = len(numbers)
    inputs = tuple(
        (value.name, value.type, dimensions) for value, dimensions in zip(graph.inputs, graph.dimensions, strict=True)
    )
    outputs = tuple(
        (name, numbers[value], dimensions)
        for name, value, dimensions in zip(graph.output_names, graph.outputs, graph.output_dimensions, strict=True)
    )
    known = tuple((value.known, value.dynamic) for value in graph.inputs)
    assumptions = tuple((numbers[condition], truth) for condition, truth in graph.assumptions)
    return FlatGraph(graph.name, inputs, tuple(nodes), outputs, known, assumptions)


def unflatten(flat: FlatGraph) -> Graph:
    """The graph, built anew."""
    graph = Graph(flat.name)
    builder = Builder(graph)
    values = [graph.add_input(name, type, dimensions) for name, type, dimensions in flat.inputs]
    for value, (known, dynamic) in zip(values, flat.known, strict=True):
        value.known, value.dynamic = known, dynamic
    for operator, operands, names in flat.nodes:
        builder.names = names
        node = builder.emit_node(operator, *(None if operand is None else values[operand] for operand in operands))
        values.extend(node.results)
    for name, number, dimensions in flat.outputs:
        graph.add_output(name, values[number], dimensions)
    for number, truth in flat.assumptions:
        graph.assume(values[number], truth)
    return graph


def _reduce(graph: Graph) -> tuple[Callable[[FlatGraph], Graph], tuple[FlatGraph]]:
    """How pickle takes a graph that is a field of an operator."""
    return (unflatten, (flatten(graph),))


copyreg.pickle(Graph, _reduce)
