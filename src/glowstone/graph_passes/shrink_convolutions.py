"""Cuts off the rows and columns of constant weights that only ever meet padding, where a convolution has one output
position along an axis. Its stride there says nothing and becomes 1.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.ops import Conv
from glowstone.ops.constant import constant, constant_array

SPATIAL = 2
"""The first spatial axis."""


def shrink_convolutions(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (shrink_convolution,))


@rewrite(Conv)
def shrink_convolution(builder: Builder, node: Node) -> Value | None:
    operator = node.operator
    assert isinstance(operator, Conv)
    x, w, *bias = node.operands
    weights = constant_array(w)
    if x is None or weights is None or x.dynamic or 0 in node.result.shape:
        return None
    count = x.rank - SPATIAL
    kernel = weights.shape[SPATIAL:]
    pads = list(operator.window(kernel).resolved_pads(x.shape[SPATIAL:]))
    strides, taps = list(operator.strides), [slice(None)] * weights.ndim
    for axis in range(count):
        extent, size = x.shape[SPATIAL + axis], kernel[axis]
        if node.result.shape[SPATIAL + axis] != 1 or operator.dilations[axis] != 1:
            continue
        first = pads[axis]
        last = min(size, first + extent)
        taps[SPATIAL + axis] = slice(first, last)
        pads[axis] = pads[axis + count] = 0
        strides[axis] = 1 if last - first == extent else strides[axis]
    kept = weights[tuple(taps)]
    if kept.shape == weights.shape and (tuple(strides), tuple(pads)) == (operator.strides, operator.pads):
        return None
    if 0 in kept.shape:
        return None
    shrunk = dataclasses.replace(operator, strides=tuple(strides), pads=tuple(pads), padding="explicit")
    assert w is not None
    return builder.emit(shrunk, x, constant(builder, np.ascontiguousarray(kept), w.element), *bias)
