"""NonZero, Compress, Unique, NonMaxSuppression: results of as many elements as the data say."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Value
from glowstone.importer.imported import Counted, counted
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Compress, NonMaxSuppression, NonZero, Shape, Unique
from glowstone.ops.constant import constant
from glowstone.ops.operand_checks import known_integer
from glowstone.ops.suppression import COLUMNS
from glowstone.types import normalize_axis


@imports("NonZero", since=9)
def import_non_zero(node: OnnxNode) -> Value | Counted:
    x = node.operand(0)
    positions, count = node.builder.emit_node(NonZero(), x).results
    return counted(node.builder, positions, count, constant(node.builder, np.array([x.rank, 0])), 1)


@imports("Compress", since=9)
def import_compress(node: OnnxNode) -> Value | Counted:
    x, axis = node.operand(0), node.optional_integer("axis")
    y, count = node.builder.emit_node(Compress(axis), x, node.operand(1)).results
    return _slices(node, x, y, count, axis)


@imports("Unique", since=11)
def import_unique(node: OnnxNode) -> tuple[Value | Counted, ...]:
    x, axis = node.operand(0), node.optional_integer("axis")
    operator = Unique(axis, bool(node.integer("sorted", 1)))
    y, first, inverse, occurrences, count = node.builder.emit_node(operator, x).results
    first_ones, how_often = (_list(node, positions, count) for positions in (first, occurrences))
    return _slices(node, x, y, count, axis), first_ones, inverse, how_often


@imports("NonMaxSuppression", since=10)
def import_non_max_suppression(node: OnnxNode) -> Value | Counted:
    most = node.optional(2)
    room = 0 if most is None else None
    if most is not None and most.known is not None and not most.dynamic:
        room = max(known_integer(most, "max_output_boxes_per_class"), 0)
    operator = NonMaxSuppression(node.flag("center_point_box"), room)
    rows, count = node.builder.emit_node(operator, *node.operands).results
    return counted(node.builder, rows, count, constant(node.builder, np.array([0, COLUMNS])), 0)


def _slices(node: OnnxNode, x: Value, y: Value, count: Value, axis: int | None) -> Value | Counted:
    """Slices of x along an axis; elements of x flattened where None."""
    if axis is None:
        return _list(node, y, count)
    return counted(node.builder, y, count, node.emit(Shape(), x), normalize_axis(axis, x.rank))


def _list(node: OnnxNode, elements: Value, count: Value) -> Value | Counted:
    return counted(node.builder, elements, count, constant(node.builder, np.array([0])), 0)
