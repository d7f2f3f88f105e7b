"""Replaces resampling of axes that have one element by broadcasting: whatever the mode, all see that element."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Expand, Resize
from glowstone.ops.constant import constant
from glowstone.ops.resize_tables import CROPPING

BLENDING = ("nearest", "linear")
"""Modes whose weights add up to 1 at a border."""


def replace_resizes(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (resize_to_expand,))


@rewrite(Resize)
def resize_to_expand(builder: Builder, node: Node) -> Value | None:
    x = node.operands[0]
    assert x is not None
    assert isinstance(node.operator, Resize)
    if node.operator.mode not in BLENDING or node.operator.coordinates == CROPPING or node.result.dynamic:
        return None
    for axis in node.operator.known_axes(*node.operands):
        if axis.extent != 1 and (axis.extent != axis.result or float(axis.scale) != 1.0):
            return None
    return builder.emit(Expand(), x, constant(builder, np.array(node.result.shape, np.int64)))
