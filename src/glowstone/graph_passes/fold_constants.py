"""Replaces what does not depend on inputs by constants.

Only values that are not dynamic are folded, so a template holds for every shape. A broadcast result stays a view: its
content is not written out. Results above the budget (`Budget.folds`), and those that take too long to compute, are left
to run time. What is no larger than what it comes from is within every budget: a transposed weight takes the place of
the weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Node, Tensor
from glowstone.ops import (
    ArgExtremum,
    BatchNormalization,
    Concat,
    Constant,
    ConstantOfShape,
    Cumulative,
    DepthToSpace,
    Elementwise,
    Expand,
    EyeLike,
    Gather,
    GatherElements,
    GatherND,
    Iota,
    LinearQuantization,
    MatMul,
    OneHot,
    Pad,
    Range,
    Reduction,
    ReshapeLike,
    Slice,
    SpaceToDepth,
    Split,
    Tile,
    Transpose,
    Trilu,
)
from glowstone.support.budget import budget, tick

Array = np.ndarray[Any, np.dtype[Any]]

WORK_LIMIT = 2**32
"""Steps of one evaluation."""
LINEAR = (
    ArgExtremum,
    BatchNormalization,
    Concat,
    Cumulative,
    DepthToSpace,
    Elementwise,
    EyeLike,
    Gather,
    GatherElements,
    GatherND,
    Iota,
    LinearQuantization,
    OneHot,
    Pad,
    Range,
    Reduction,
    ReshapeLike,
    Slice,
    SpaceToDepth,
    Split,
    Tile,
    Transpose,
    Trilu,
)
"""Operators whose evaluation takes time in proportion to the elements."""
VIEWS = (ConstantOfShape, Expand)
"""Operators whose results repeat what is there once."""


def fold_constants(graph: Graph) -> bool:
    """Evaluate nodes whose operands are constants, or whose results the host knows for every shape."""
    changed = False
    for node in graph.nodes:
        tick()
        if isinstance(node.operator, Constant):
            continue
        arrays = _results(node)
        if arrays is None:
            continue
        builder = Builder(graph, node.names)
        for value, array in zip(node.results, arrays, strict=True):
            graph.replace(value, builder.emit(Constant(Tensor(np.asarray(array), value.element))))
        changed = True
    if changed:
        graph.drop_dead_uses()
    return changed


def _results(node: Node) -> tuple[object, ...] | None:
    """The node's results, or None where it must stay."""
    if any(value.dynamic or value.type.channel_block for value in node.results):
        return None
    known = [value.known for value in node.results]
    if all(array is not None for array in known):
        return tuple(known)
    if node.operator.bodies:  # a loop may have any number of passes
        return None
    arrays: list[Array | None] = []
    for operand in node.operands:
        if operand is None:
            arrays.append(None)
        elif isinstance(operand.operator, Constant):
            arrays.append(operand.operator.tensor.array)
        else:
            return None
    if not arrays or _work(node) > WORK_LIMIT or not _is_within_budget(node, arrays):
        return None
    return node.operator.evaluate(*arrays)


def _is_within_budget(node: Node, arrays: Sequence[Array | None]) -> bool:
    size = sum(math.prod(value.shape) * value.element.size for value in node.results)
    if isinstance(node.operator, VIEWS):  # passes that read it may still write it out
        return size <= budget().options.fold_value_limit
    return budget().folds(size, sum(map(_held_bytes, arrays)))


def _work(node: Node) -> int:
    """About how many steps the evaluation of a node takes; of most operators it grows no faster than squared."""
    elements = sum(value.type.size for value in (*node.present_operands(), *node.results))
    if isinstance(node.operator, LINEAR + VIEWS):
        return elements
    if isinstance(node.operator, MatMul):
        return node.result.type.size * node.operands[0].shape[-1] if node.operands[0] is not None else 0
    return elements * elements


def _held_bytes(array: Array | None) -> int:
    """Bytes of memory behind an array: an axis of stride 0 repeats what is there once."""
    if array is None:
        return 0
    extents = (extent for extent, stride in zip(array.shape, array.strides, strict=True) if stride)
    return int(math.prod(extents)) * array.itemsize
