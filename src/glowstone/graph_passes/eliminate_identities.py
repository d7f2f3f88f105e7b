"""Removes operators that change nothing: Identity, casts to the same type, transpositions that keep the order, padding
with nothing, one repetition, windows of one element, scaling by 1; and reshapes, slices and expansions to the same
shape, where no shape is dynamic or the operands say so for every shape.
"""

from __future__ import annotations

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.ops import (
    AveragePool,
    Cast,
    Expand,
    Identity,
    MaxPool,
    Pad,
    Reduction,
    Reshape,
    ReshapeLike,
    Resize,
    Shape,
    Slice,
    Squeeze,
    Tile,
    Transpose,
    Unsqueeze,
)
from glowstone.ops.constant import constant_array
from glowstone.ops.resize_tables import CROPPING
from glowstone.types import LARGEST_EXTENT, normalize_axes


def eliminate_identities(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(
        graph,
        (
            drop_identity,
            drop_cast,
            drop_transpose,
            drop_static_reshape,
            drop_whole_slice,
            drop_ones,
            drop_empty_padding,
            drop_window_of_one,
            drop_unit_scale,
            drop_inverse_reshape,
            drop_trivial_reduction,
        ),
    )


@rewrite(Identity)
def drop_identity(builder: Builder, node: Node) -> Value | None:
    return node.operands[0]


@rewrite(Cast)
def drop_cast(builder: Builder, node: Node) -> Value | None:
    (x,) = node.operands
    assert x is not None
    return x if x.type == node.result.type else None


@rewrite(Transpose)
def drop_transpose(builder: Builder, node: Node) -> Value | None:
    assert isinstance(node.operator, Transpose)
    permutation = node.operator.permutation
    return node.operands[0] if permutation == tuple(range(len(permutation))) else None


@rewrite(ReshapeLike, Slice, Expand)
def drop_static_reshape(builder: Builder, node: Node) -> Value | None:
    """The same shape by coincidence at the reference shape proves nothing, so dynamic values stay."""
    x = node.operands[0]
    assert x is not None
    if x.dynamic or node.result.dynamic or x.type != node.result.type:
        return None
    if isinstance(node.operator, Slice) and any(
        kept != range(extent) for kept, extent in zip(node.operator.known_ranges(*node.operands), x.shape, strict=True)
    ):
        return None
    return x


@rewrite(Slice)
def drop_whole_slice(builder: Builder, node: Node) -> Value | None:
    """From 0 to beyond any extent, one by one."""
    x, starts, ends, _, steps = (*node.operands, None, None)[:5]
    first, last, step = (constant_array(value) for value in (starts, ends, steps))
    if first is None or last is None or (steps is not None and step is None):
        return None
    is_whole = np.all(first == 0) and np.all(last >= LARGEST_EXTENT) and (step is None or np.all(step == 1))
    return x if is_whole else None


@rewrite(Tile, Expand)
def drop_ones(builder: Builder, node: Node) -> Value | None:
    """One repetition along every axis; a shape of ones to broadcast to."""
    x, numbers = node.operands
    ones = constant_array(numbers)
    assert x is not None
    return x if ones is not None and ones.size <= x.rank and np.all(ones == 1) else None


@rewrite(Pad)
def drop_empty_padding(builder: Builder, node: Node) -> Value | None:
    margins = constant_array(node.operands[1])
    return node.operands[0] if margins is not None and np.all(margins == 0) else None


@rewrite(MaxPool, AveragePool)
def drop_window_of_one(builder: Builder, node: Node) -> Value | None:
    """Every window is one element of x."""
    assert isinstance(node.operator, MaxPool | AveragePool)
    window = node.operator.window
    is_single = set(window.kernel) == set(window.strides) == {1}
    return node.operands[0] if is_single and not any(window.pads) else None


@rewrite(Resize)
def drop_unit_scale(builder: Builder, node: Node) -> Value | None:
    """Scales of 1; or sizes that are x's own, where nothing is dynamic."""
    assert isinstance(node.operator, Resize)
    x, _, scales, sizes = (*node.operands, None, None)[:4]
    assert x is not None
    if node.operator.coordinates == CROPPING:
        return None
    factors = constant_array(scales)
    if sizes is None and factors is not None:
        return x if factors.size and np.all(factors == 1) else None
    return x if not node.result.dynamic and x.type == node.result.type else None


@rewrite(Reshape, Squeeze, Unsqueeze)
def drop_inverse_reshape(builder: Builder, node: Node) -> Value | None:
    """Back to the shape that x had: named by x itself, or by the axes that came and go."""
    between = node.operands[0]
    x = operand(between)
    if between is None or x is None or not isinstance(between.operator, ReshapeLike):
        return None
    if isinstance(node.operator, Reshape):
        shape = node.operands[1]
        is_own = shape is not None and shape.operator == Shape() and operand(shape) is x
        return x if is_own else None
    inner, outer = between.operator, node.operator
    if isinstance(inner, Unsqueeze) and isinstance(outer, Squeeze) and outer.axes is not None:
        return x if normalize_axes(inner.axes, between.rank) == normalize_axes(outer.axes, between.rank) else None
    if isinstance(inner, Squeeze) and isinstance(outer, Unsqueeze) and inner.axes is not None:
        return x if normalize_axes(inner.axes, x.rank) == normalize_axes(outer.axes, x.rank) else None
    return None


@rewrite(Reduction)
def drop_trivial_reduction(builder: Builder, node: Node) -> Value | None:
    """Over axes that have one element, and stay."""
    assert isinstance(node.operator, Reduction)
    (x,) = node.operands
    assert x is not None
    is_single = all(x.shape[axis] == 1 for axis in node.operator.normal_axes(x.rank))
    return x if is_single and node.operator.keeps_single and node.operator.keep and not x.dynamic else None
