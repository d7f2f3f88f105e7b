"""Replaces what does not depend on inputs by constants.

Only values that are not dynamic are folded, so a template holds for every shape. A broadcast result stays a view: its
content is not written out. Results larger than `FOLDING_LIMIT` bytes are left to run time, unless they are no larger
than what they come from: a transposed weight takes the place of the weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Node, Tensor
from glowstone.ops import Constant

Array = np.ndarray[Any, np.dtype[Any]]

FOLDING_LIMIT = 256 * 2**20
"""Bytes of one folded value."""


def fold_constants(graph: Graph) -> bool:
    """Evaluate nodes whose operands are constants, or whose results the host knows for every shape."""
    changed = False
    for node in graph.nodes:
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
    size = sum(math.prod(value.shape) * value.element.size for value in node.results)
    if not arrays or size > max(FOLDING_LIMIT, sum(map(_held_bytes, arrays))):
        return None
    return node.operator.evaluate(*arrays)


def _held_bytes(array: Array | None) -> int:
    """Bytes of memory behind an array: an axis of stride 0 repeats what is there once."""
    if array is None:
        return 0
    extents = (extent for extent, stride in zip(array.shape, array.strides, strict=True) if stride)
    return int(math.prod(extents)) * array.itemsize
