"""Joins matrix products that share a factor, where it pays: with few rows a product takes as long as reading its
weights, and one call costs as much as the next.

Products of one value with several constant matrices become one product with all their columns; products of several
values with one constant matrix become one product of all their rows.
"""

from __future__ import annotations

import math

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value
from glowstone.graph_passes.slices import Bounds, emit_slice
from glowstone.ops import Add, Concat, MatMul
from glowstone.ops.constant import constant, constant_array
from glowstone.types import ElementType

MOST_ROWS = 4
"""Rows of the left factor, at the reference shape."""


def merge_products(graph: Graph) -> bool:
    """Merge each group of products once."""
    by_left: dict[Value, list[Node]] = {}
    by_right: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        if _is_candidate(node):
            left, right = node.present_operands()
            by_left.setdefault(left, []).append(node)
            by_right.setdefault(right, []).append(node)
    changed = False
    merged: set[Node] = set()
    for group in by_left.values():
        if len(group) > 1:
            _merge_columns(graph, group)
            merged.update(group)
            changed = True
    for group in by_right.values():
        rest = [node for node in group if node not in merged]
        if len(rest) > 1 and _have_one_shape(rest) and not _depend(rest):
            _merge_rows(graph, rest)
            changed = True
    if changed:
        graph.drop_dead_uses()
    return changed


def _is_candidate(node: Node) -> bool:
    if not isinstance(node.operator, MatMul):
        return False
    left, right = node.present_operands()
    weights = constant_array(right)
    if weights is None or weights.ndim != 2 or left.rank < 2 or left.element is not ElementType.F32:
        return False
    return constant_array(left) is None and math.prod(left.shape[:-1]) <= MOST_ROWS


def _merge_columns(graph: Graph, group: list[Node]) -> None:
    """One product with the columns of all, and a sum with the offsets of all where each has one that is constant."""
    builder = Builder(graph, tuple(dict.fromkeys(name for node in group for name in node.names)))
    (left, _), results = group[0].operands, [node.result for node in group]
    weights = [constant_array(node.operands[1]) for node in group]
    whole = builder.emit(MatMul(), left, constant(builder, np.concatenate([w for w in weights if w is not None], 1)))
    sums = [_sum_with_offset(graph, node) for node in group]
    offsets = [offset for found in sums if found is not None for _, offset in [found]]
    if len(offsets) == len(group):
        whole = builder.emit(Add(), whole, constant(builder, np.concatenate(offsets)))
        results = [node.result for found in sums if found is not None for node, _ in [found]]
    position = 0
    for node, result in zip(group, results, strict=True):
        columns = node.result.shape[-1]
        part = emit_slice(builder, whole, whole.rank - 1, Bounds(position, position + columns))
        graph.replace(result, part)
        position += columns


def _sum_with_offset(graph: Graph, node: Node) -> tuple[Node, np.ndarray[tuple[int, ...], np.dtype[np.float32]]] | None:
    """The only reader, if that adds a constant per column."""
    if not graph.has_single_use(node.result):
        return None
    (user,) = node.result.users()
    if not isinstance(user.operator, Add):
        return None
    other = next(value for value in user.present_operands() if value is not node.result)
    array = constant_array(other)
    return (user, array) if array is not None and array.shape == node.result.shape[-1:] else None


def _have_one_shape(group: list[Node]) -> bool:
    """Whether the left factors can be stacked: matrices, none of which can change."""
    lefts = [node.operands[0] for node in group]
    return all(value is not None and value.rank == 2 and not value.dynamic for value in lefts)


def _depend(group: list[Node]) -> bool:
    """Whether one product needs the result of another."""
    wanted = set(group)
    seen: set[Node] = set()
    stack = [value.node for node in group for value in node.present_operands() if value.node is not None]
    while stack:
        node = stack.pop()
        if node in wanted:
            return True
        if node not in seen:
            seen.add(node)
            stack.extend(value.node for value in node.present_operands() if value.node is not None)
    return False


def _merge_rows(graph: Graph, group: list[Node]) -> None:
    builder = Builder(graph, tuple(dict.fromkeys(name for node in group for name in node.names)))
    lefts = [node.operands[0] for node in group]
    whole = builder.emit(MatMul(), builder.emit(Concat(0), *lefts), group[0].operands[1])
    position = 0
    for node in group:
        rows = node.result.shape[0]
        graph.replace(node.result, emit_slice(builder, whole, 0, Bounds(position, position + rows)))
        position += rows
