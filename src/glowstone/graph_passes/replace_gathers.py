"""Replaces gathers at one constant index, or at neighbouring ones, by slices, which move no data."""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.slices import Bounds, emit_slice
from glowstone.ops import Gather, Squeeze
from glowstone.ops.constant import constant_array
from glowstone.types import normalize_axis


def replace_gathers(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (gather_to_slice,))


@rewrite(Gather)
def gather_to_slice(builder: Builder, node: Node) -> Value | None:
    """Only where no extent can change: a gather out of range must be refused, a slice would be cut short."""
    x, indices = node.operands
    array = constant_array(indices)
    assert x is not None
    assert isinstance(node.operator, Gather)
    if array is None or array.ndim > 1 or not array.size or node.result.known is not None:
        return None
    axis = normalize_axis(node.operator.axis, x.rank)
    extent = x.shape[axis]
    numbers = [int(index) + (extent if index < 0 else 0) for index in array.ravel()]
    first, end = numbers[0], numbers[0] + len(numbers)
    if x.dynamic or numbers != list(range(first, end)) or first < 0 or end > extent:
        return None
    taken = emit_slice(builder, x, axis, Bounds(first, end))
    return taken if array.ndim else builder.emit(Squeeze((axis,)), taken)
