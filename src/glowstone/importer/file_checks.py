"""Checked before anything walks through a file: how much it holds (see `options.py`), and that names are text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glowstone.errors import ModelError
from glowstone.importer.bodies import bodies_of, nested_graphs
from glowstone.support.budget import Budget, exceeded

MOST_SHOWN = 80
"""Characters of a name in a message."""
TYPE_FIELDS = {"sequence_type": "elem_type", "optional_type": "elem_type", "map_type": "value_type"}
"""Kinds of types that have a type inside, with its field."""


def check_limits(proto: Any, budget: Budget) -> None:
    """Check nesting, the number of nodes, and the sizes of attributes.

    Raises:
        LimitError: one of them is above the limit that an option sets.
    """
    limit = budget.options.nesting_limit
    for entry in (*proto.graph.input, *proto.graph.output):
        _check_type(entry.type, limit)
    count = 0
    stack: list[tuple[Iterable[Any], int]] = [(proto.graph.node, 1)]
    stack += [(function.node, 1) for function in proto.functions]
    while stack:
        nodes, depth = stack.pop()
        if depth > limit:
            raise exceeded("nesting_limit", "graphs are nested too deep", limit, depth)
        for node in nodes:
            budget.tick()
            count += 1
            _check_attributes(node, budget.options.attribute_limit)
            stack += [(body.node, depth + 1) for body in bodies_of(node)]
    if count > budget.options.node_limit:
        raise exceeded("node_limit", "the model has too many nodes", budget.options.node_limit, count)


def _check_type(type: Any, limit: int) -> None:
    depth = 0
    while (field := type.WhichOneof("value")) in TYPE_FIELDS:
        type = getattr(getattr(type, field), TYPE_FIELDS[field])
        depth += 1
        if depth > limit:
            raise exceeded("nesting_limit", "types are nested too deep", limit, depth)


def _check_attributes(node: Any, limit: int) -> None:
    for attribute in node.attribute:
        size = max(len(attribute.ints), len(attribute.floats), len(attribute.strings), len(attribute.s))
        if size > limit:
            message = f"attribute {str(attribute.name)[:MOST_SHOWN]} is too large"
            error = exceeded("attribute_limit", message, limit, size)
            raise error.with_context(node=str(node.name)[:MOST_SHOWN], operator=str(node.op_type)[:MOST_SHOWN])


def check_names(proto: Any) -> None:
    """Protobuf hands out bytes where a string is not UTF-8.

    Raises:
        ModelError: a name is no text.
    """
    for graph in nested_graphs(proto.graph):
        _check_text(_names_of_graph(graph))
    for function in proto.functions:
        _check_text((function.name, function.domain, *function.input, *function.output, *function.attribute))
        for node in function.node:
            _check_text(_names_of_node(node))
            for body in bodies_of(node):
                for graph in nested_graphs(body):
                    _check_text(_names_of_graph(graph))


def _names_of_graph(graph: Any) -> Iterable[object]:
    yield graph.name
    for entry in (*graph.input, *graph.output, *graph.value_info):
        yield entry.name
        yield from (dim.dim_param for dim in entry.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
    for node in graph.node:
        yield from _names_of_node(node)


def _names_of_node(node: Any) -> Iterable[object]:
    yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    for attribute in node.attribute:
        yield from (attribute.name, attribute.ref_attr_name)


def _check_text(names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise ModelError("a name is no text", expected="UTF-8", found=repr(name)[:MOST_SHOWN])
