"""Joins slices that follow each other along different axes."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.graph_passes.slices import constant_lists
from glowstone.ops import Slice
from glowstone.ops.constant import constant


def merge_slices(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (merge_two_slices,))


@rewrite(Slice)
def merge_two_slices(builder: Builder, node: Node) -> Value | None:
    """Axes are independent of each other, so this holds at every shape."""
    inner = node.operands[0]
    outer_lists, inner_lists = constant_lists(node.result), constant_lists(inner)
    if outer_lists is None or inner_lists is None or set(outer_lists[2]) & set(inner_lists[2]):
        return None
    lists = (np.array(first + second, np.int64) for first, second in zip(inner_lists, outer_lists, strict=True))
    return builder.emit(Slice(), operand(inner), *(constant(builder, numbers) for numbers in lists))
