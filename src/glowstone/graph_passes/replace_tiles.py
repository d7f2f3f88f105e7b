"""Replaces repetitions of single elements by broadcasting, which moves no data."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Expand, Mul, Tile
from glowstone.ops.constant import constant


def replace_tiles(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (tile_to_expand,))


@rewrite(Tile)
def tile_to_expand(builder: Builder, node: Node) -> Value | None:
    """Every axis that is repeated has one element; should other repetitions come, `Expand.infer` refuses them."""
    x, repeats = node.operands
    assert x is not None
    assert repeats is not None
    if x.dynamic or repeats.known is None:
        return None
    counts = [int(count) for count in repeats.known.ravel()]
    if any(count != 1 and extent != 1 for count, extent in zip(counts, x.shape, strict=True)):
        return None
    shape = builder.emit(Mul(), repeats, constant(builder, np.array(x.shape, np.int64)))
    return builder.emit(Expand(), x, shape)
