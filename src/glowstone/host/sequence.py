"""Sequences and optionals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowstone.errors import ExecutionError, ModelError
from glowstone.host.registry import (
    MISSING,
    Array,
    HostNode,
    HostValue,
    Kind,
    array_at,
    axis_within,
    describe,
    indices_at,
    integer_at,
    operand_at,
    optional_at,
    runs_on_host,
    sequence_at,
)


@runs_on_host("SequenceEmpty")
def sequence_empty(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    return []


@runs_on_host("SequenceConstruct")
def sequence_construct(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    return [array_at(node, operands, index) for index in range(len(operands))]


@runs_on_host("SequenceAt")
def sequence_at_position(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    items = sequence_at(node, operands, 0)
    return items[_position(integer_at(node, operands, 1), len(items) - 1, len(items))]


@runs_on_host("SequenceInsert")
def sequence_insert(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    items, added = list(sequence_at(node, operands, 0)), operand_at(node, operands, 1)
    last = len(items)
    place = last if optional_at(operands, 2) is None else _position(integer_at(node, operands, 2), last, last)
    items.insert(place, added)
    return items


@runs_on_host("SequenceErase")
def sequence_erase(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    items = list(sequence_at(node, operands, 0))
    last = len(items) - 1
    del items[last if optional_at(operands, 1) is None else _position(integer_at(node, operands, 1), last, len(items))]
    return items


def _position(given: int, last: int, length: int) -> int:
    """A position counted from the front, at most `last`; a negative one counts from behind `length`."""
    position = given + length if given < 0 else given
    if not 0 <= position <= last:
        raise ExecutionError("a position in a sequence is out of range", expected=f"{-length} to {last}", found=given)
    return position


@runs_on_host("SequenceLength")
def sequence_length(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    return np.array(len(sequence_at(node, operands, 0)), np.int64)


@runs_on_host("SplitToSequence")
def split_to_sequence(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    """Parts of equal or given extents; of extent 1, without the axis unless `keepdims`, where none are given."""
    x = array_at(node, operands, 0)
    split = None if optional_at(operands, 1) is None else indices_at(node, operands, 1)
    axis = axis_within(node.attribute("axis", Kind.INTEGER, 0), x.ndim)
    length = x.shape[axis]
    if split is None:
        if node.attribute("keepdims", Kind.INTEGER, 1):
            return [np.ascontiguousarray(part) for part in np.split(x, length, axis)] if length else []
        return [np.ascontiguousarray(part) for part in np.moveaxis(x, axis, 0)]
    extents = [int(extent) for extent in split.reshape(-1)]
    if split.ndim == 0:
        if extents[0] < 1:
            raise ExecutionError("a part has no extent", expected="1 or more", found=extents[0])
        ends = list(range(extents[0], length, extents[0]))
    else:
        if min(extents, default=0) < 0 or sum(extents) != length:
            raise ExecutionError("parts do not fit the axis", expected=f"extents of {length} in all", found=extents)
        ends = np.cumsum(extents)[:-1].tolist()
    return [np.ascontiguousarray(part) for part in np.split(x, ends, axis)]


@runs_on_host("ConcatFromSequence")
def concat_from_sequence(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    items = sequence_at(node, operands, 0)
    if not items:
        raise ExecutionError("a join of nothing", expected="a sequence that is not empty", found="an empty sequence")
    if not all(isinstance(item, np.ndarray) for item in items):
        raise ModelError("a join of what are no tensors", expected="tensors", found=", ".join(map(describe, items)))
    is_new = node.attribute("new_axis", Kind.INTEGER, 0)
    axis = axis_within(node.required("axis", Kind.INTEGER), items[0].ndim + (1 if is_new else 0))
    try:
        return np.stack(items, axis) if is_new else np.concatenate(items, axis)
    except ValueError as error:
        found = ", ".join(map(describe, items))
        raise ExecutionError("parts do not fit each other", expected="extents that agree", found=found) from error


@runs_on_host("Optional")
def optional(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    return optional_at(operands, 0)


@runs_on_host("OptionalHasElement")
def optional_has_element(node: HostNode, operands: Sequence[HostValue]) -> Array:
    return np.array(optional_at(operands, 0) is not None)


@runs_on_host("OptionalGetElement")
def optional_get_element(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    value = operand_at(node, operands, 0)
    if value is None:
        raise ExecutionError("an optional is empty", expected="a value", found="nothing")
    return value


@runs_on_host("Identity")
def identity(node: HostNode, operands: Sequence[HostValue]) -> HostValue:
    value = operand_at(node, operands, 0)
    assert value is not MISSING
    return value
