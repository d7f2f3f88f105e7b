"""Moves casts and dequantization below a Concat of values converted alike, for less data is joined; and quantization
above it, for the same reason.
"""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.ops import Cast, Concat, DequantizeLinear, QuantizeLinear


def sink_conversions(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (sink_below_concat, hoist_quantization))


@rewrite(Concat)
def sink_below_concat(builder: Builder, node: Node) -> Value | None:
    """All operands are the same conversion, with the same parameters, of values of one narrower type."""
    values = list(node.present_operands())
    first = values[0]
    source = operand(first)
    if len(values) < 2 or source is None or not isinstance(first.operator, Cast | DequantizeLinear):
        return None
    if source.element.size >= first.element.size or not _is_per_tensor(first):
        return None
    for value in values:
        inner = operand(value)
        if inner is None or value.operator != first.operator or inner.element is not source.element:
            return None
        if not _have_equal_parameters(value, first) or not builder.graph.has_single_use(value):
            return None
    joined = builder.emit(node.operator, *(operand(value) for value in values))
    assert first.node is not None
    return builder.emit(first.operator, joined, *first.node.operands[1:])


@rewrite(QuantizeLinear)
def hoist_quantization(builder: Builder, node: Node) -> Value | None:
    joined = node.operands[0]
    if joined is None or joined.node is None or not isinstance(joined.operator, Concat):
        return None
    if not _is_per_tensor(node.result) or not builder.graph.has_single_use(joined):
        return None
    parts = [builder.emit(node.operator, part, *node.operands[1:]) for part in joined.node.operands]
    return builder.emit(joined.operator, *parts)


def _is_per_tensor(value: Value) -> bool:
    """Whether every parameter of the conversion is one number, and fixed."""
    assert value.node is not None
    parameters = value.node.operands[1:]
    return all(parameter is None or (parameter.type.size == 1 and not parameter.dynamic) for parameter in parameters)


def _have_equal_parameters(value: Value, other: Value) -> bool:
    """The same values; constants of the same content are one value after common subexpressions are."""
    assert value.node is not None
    assert other.node is not None
    return value.node.operands[1:] == other.node.operands[1:]
