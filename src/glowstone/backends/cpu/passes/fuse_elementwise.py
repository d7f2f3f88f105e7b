"""Joins elementwise operators into `Map` nodes: a value read by one elementwise node of the same shape moves into it.

A value of another shape stays outside, because it would be computed again for every position it is stretched to.
"""

from __future__ import annotations

from glowstone import scalar
from glowstone.graph import Builder, Graph, Node, Value
from glowstone.ops import Elementwise, Identity, Map
from glowstone.ops.elementwise import Clip
from glowstone.scalar import Expression, Input

LARGEST_EXPRESSION = 48
"""Distinct nodes of one scalar expression."""
LARGEST_TREE = 1024
"""Nodes of one, shared ones written out, as they are where a kernel is named."""
MOST_OPERANDS = 8


def fuse_elementwise(graph: Graph) -> bool:
    """Fuse producers into their only user, users in order."""
    changed = False
    for node in graph.nodes:
        if not is_fusible(node) or not any(value.uses or graph.is_output(value) for value in node.results):
            continue
        changed = _fuse_operands(graph, node) or changed
    if changed:
        graph.drop_dead_uses()
    return changed


def is_fusible(node: Node) -> bool:
    """An elementwise node that computes at run time."""
    operator = node.operator
    if not isinstance(operator, Elementwise) or isinstance(operator, Clip | Identity):
        return False
    return node.result.known is None and bool(node.operands)


def _fuse_operands(graph: Graph, node: Node) -> bool:
    """Take in every operand that qualifies, over and over."""
    changed = False
    while True:
        producer = next((value for value in node.present_operands() if _moves_into(graph, value, node)), None)
        if producer is None or producer.node is None:
            return changed
        merged = _merge(graph, producer, node)
        if merged is None:
            return changed
        node = merged
        changed = True


def _moves_into(graph: Graph, value: Value, user: Node) -> bool:
    if value.node is None or not is_fusible(value.node) or graph.is_output(value):
        return False
    return value.users() == [user] and value.shape == user.result.shape


def _merge(graph: Graph, value: Value, user: Node) -> Node | None:
    """One `Map` for both, or None where it would be too large."""
    assert value.node is not None
    operands: list[Value] = []
    outer = [
        _body(value.node, operands) if operand is value else _input(operand, operands)
        for operand in user.present_operands()
    ]
    elements = tuple(operand.element for operand in user.present_operands())
    assert isinstance(user.operator, Elementwise)
    body = scalar.substitute(user.operator.scalar_expression(elements), outer)
    if len(operands) > MOST_OPERANDS or len(scalar.walk(body)) > LARGEST_EXPRESSION:
        return None
    if scalar.tree_size(body) > LARGEST_TREE:
        return None
    names = tuple(dict.fromkeys((*value.node.names, *user.names)))
    merged = Builder(graph, names).emit_node(Map(body, len(operands)), *operands)
    graph.replace(user.result, merged.result)
    for dead in (user, value.node):
        for index, operand_value in enumerate(dead.operands):
            if operand_value is not None:
                operand_value.uses.pop((dead, index), None)
    return merged


def _body(node: Node, operands: list[Value]) -> Expression:
    """The node's expression over `operands`, which grows."""
    assert isinstance(node.operator, Elementwise)
    values = list(node.present_operands())
    expression = node.operator.scalar_expression(tuple(value.element for value in values))
    return scalar.substitute(expression, [_input(value, operands) for value in values])


def _input(value: Value, operands: list[Value]) -> Expression:
    if value not in operands:
        operands.append(value)
    return Input(value.element, operands.index(value))
