"""Checks the invariants of a graph: use lists, re-inferred types, output names."""

from __future__ import annotations

from collections.abc import Iterable

from glowstone.graph.graph import Graph, Value


def verify_graph(graph: Graph) -> None:
    """Raise AssertionError (a fault of ours, never of the user) where an invariant does not hold."""
    defined = set(graph.inputs)
    names = [value.name for value in graph.inputs]
    assert len(names) == len(set(names)) == len(graph.dimensions), f"input names {names}"
    for value, dimensions in zip(graph.inputs, graph.dimensions, strict=True):
        assert len(dimensions) == value.rank, f"{value} declared as {dimensions}"
    for node in graph.nodes:
        for index, operand in enumerate(node.operands):
            if operand is None:
                continue
            assert operand in defined, f"{node} reads {operand} before it is defined"
            assert (node, index) in operand.uses, f"{operand} does not list its use by {node}"
        node.operator.check_operands(node.operands)
        types = node.operator.infer(*node.operands)  # type: ignore[arg-type]
        found = tuple(value.type for value in node.results)
        assert types == found, f"{node}: inferred {types}, holds {found}"
        for body in node.operator.bodies:
            verify_graph(body)
        defined.update(node.results)
    assert all(condition in defined for condition, _ in graph.assumptions), "an assumption of no value of the graph"
    _verify_uses(defined)
    names = graph.output_names
    assert len(names) == len(set(names)) == len(graph.outputs) == len(graph.output_dimensions), f"output names {names}"


def _verify_uses(values: Iterable[Value]) -> None:
    for value in values:
        for node, index in value.uses:
            assert node.operands[index] is value, f"{value} lists a use by {node} that is none"
