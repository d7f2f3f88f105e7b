"""Joins reductions of the same kind that follow each other."""

from __future__ import annotations

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.ops import ReduceMax, ReduceMean, ReduceMin, ReduceSum, Reduction


def merge_reductions(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (merge_two_reductions,))


@rewrite(ReduceMax, ReduceMean, ReduceMin, ReduceSum)
def merge_two_reductions(builder: Builder, node: Node) -> Value | None:
    """One reduction over the axes of both, if they are neighbours: others would cost a transposition."""
    inner = node.operands[0]
    x = operand(inner)
    if inner is None or x is None or type(inner.operator) is not type(node.operator):
        return None
    assert isinstance(inner.operator, Reduction)
    assert isinstance(node.operator, Reduction)
    keep = node.operator.keep
    if inner.operator.keep is not keep or not builder.graph.has_single_use(inner) or not x.element.is_float:
        return None
    first = inner.operator.normal_axes(x.rank)
    left = range(x.rank) if keep else [axis for axis in range(x.rank) if axis not in first]
    axes = sorted({*first, *(left[axis] for axis in node.operator.normal_axes(inner.rank))})
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        return None
    return builder.emit(type(node.operator)(tuple(axes), keep), x)
