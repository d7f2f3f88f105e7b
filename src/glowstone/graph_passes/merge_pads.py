"""Joins paddings with the same number that follow each other."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import number, operand
from glowstone.ops import Pad
from glowstone.ops.constant import constant, constant_array


def merge_pads(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (merge_two_pads,))


@rewrite(Pad)
def merge_two_pads(builder: Builder, node: Node) -> Value | None:
    inner = node.operands[0]
    if inner is None or inner.node is None:
        return None
    outer_margins, inner_margins = constant_margins(node), constant_margins(inner.node)
    fill = filling(node)
    if outer_margins is None or inner_margins is None or fill is None or fill != filling(inner.node):
        return None
    total = [first + second for first, second in zip(outer_margins, inner_margins, strict=True)]
    return builder.emit(Pad(), operand(inner), constant(builder, np.array(total, np.int64)), *node.operands[2:3])


def constant_margins(node: Node) -> tuple[int, ...] | None:
    """All beginnings, then all ends, of padding with a number that the graph fixes; None if any takes elements away."""
    if not isinstance(node.operator, Pad) or node.operator.mode != "constant":
        return None
    x, pads, _, axes = (*node.operands, None, None)[:4]
    assert x is not None
    margins, names = constant_array(pads), constant_array(axes)
    if margins is None or (axes is not None and names is None):
        return None
    before, after = node.operator.margins(x.rank, margins, names)
    return (*before, *after) if min(*before, *after, 0) >= 0 else None


def filling(node: Node) -> float | None:
    """The number that the padding consists of."""
    value = node.operands[2] if len(node.operands) > 2 else None
    return 0.0 if value is None else number(value)
