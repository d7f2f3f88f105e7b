"""Sequences and optionals whose structure is known where the graph is built: nothing of them is left at run time.

Where it is not (a position that is data, a number of parts that follows from a symbolic extent), rules refuse, and the
node runs on the host.
"""

from __future__ import annotations

import functools

import numpy as np

from glowstone.errors import ModelError, ShapeError, UnsupportedError
from glowstone.graph import Value
from glowstone.importer.imported import Imported, ValueSequence
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Concat, Identity, Slice, Squeeze, Unsqueeze
from glowstone.ops.constant import constant
from glowstone.ops.operand_checks import known_integer
from glowstone.types import normalize_axis

for_sequences = functools.partial(imports, sequences=True)


@for_sequences("SequenceEmpty", since=11)
def import_sequence_empty(node: OnnxNode) -> ValueSequence:
    return ValueSequence(())


@for_sequences("SequenceConstruct", since=11)
def import_sequence_construct(node: OnnxNode) -> ValueSequence:
    return ValueSequence(tuple(node.operand(index) for index in range(len(node.operands))))


@for_sequences("SequenceAt", since=11)
def import_sequence_at(node: OnnxNode) -> Imported:
    items = node.sequence(0).items
    return items[_position(node, 1, len(items) - 1, len(items))]


@for_sequences("SequenceInsert", since=11)
def import_sequence_insert(node: OnnxNode) -> ValueSequence:
    items = list(node.sequence(0).items)
    items.insert(_position(node, 2, len(items), len(items)), node.operand(1))
    return ValueSequence(tuple(items))


@for_sequences("SequenceErase", since=11)
def import_sequence_erase(node: OnnxNode) -> ValueSequence:
    items = list(node.sequence(0).items)
    del items[_position(node, 1, len(items) - 1, len(items))]
    return ValueSequence(tuple(items))


def _position(node: OnnxNode, index: int, last: int, length: int) -> int:
    """A constant position, counted from the front; the last one where it is left out.

    Raises:
        UnsupportedError: it is data.
        ModelError: it is out of range.
    """
    given = node.optional(index)
    if given is None:
        return last
    if given.known is None or given.dynamic:
        raise UnsupportedError("a position in a sequence depends on data")
    position = known_integer(given, "position")
    counted = position + length if position < 0 else position
    if not 0 <= counted <= last:
        raise ModelError("a position in a sequence is out of range", expected=f"{-length} to {last}", found=position)
    return counted


@for_sequences("SequenceLength", since=11)
def import_sequence_length(node: OnnxNode) -> Value:
    return constant(node.builder, np.array(len(node.sequence(0).items), np.int64))


@imports("SplitToSequence", since=11)
def import_split_to_sequence(node: OnnxNode) -> ValueSequence:
    x, split = node.operand(0), node.optional(1)
    axis = normalize_axis(node.integer("axis", 0), x.rank)
    if x.dynamic or (split is not None and (split.known is None or split.dynamic)):
        raise UnsupportedError("the number of parts depends on data or on a symbolic dimension")
    ends = np.cumsum(_extents(x.shape[axis], split)).tolist()
    parts = [_part(node, x, axis, start, end) for start, end in zip([0, *ends], ends, strict=False)]
    if split is None and not node.integer("keepdims", 1):
        parts = [node.emit(Squeeze((axis,)), part) for part in parts]
    return ValueSequence(tuple(parts))


def _extents(length: int, split: Value | None) -> list[int]:
    """The extents of the parts: 1 each, of one given extent (the last may be shorter), or as given."""
    if split is None:
        return [1] * length
    assert split.known is not None
    given = [int(extent) for extent in split.known.reshape(-1)]
    if split.rank == 0:
        if given[0] < 1:
            raise ModelError("a part has no extent", expected="1 or more", found=given[0])
        return [min(given[0], length - start) for start in range(0, length, given[0])]
    if min(given, default=0) < 0 or sum(given) != length:
        raise ShapeError("parts do not fit the axis", expected=f"extents of {length} in all", found=given)
    return given


def _part(node: OnnxNode, x: Value, axis: int, start: int, end: int) -> Value:
    numbers = (constant(node.builder, np.array([number])) for number in (start, end, axis))
    return node.emit(Slice(), x, *numbers)


@for_sequences("ConcatFromSequence", since=11)
def import_concat_from_sequence(node: OnnxNode) -> Value:
    axis = node.optional_integer("axis")
    if axis is None:
        raise ModelError("attribute axis is missing", expected="an integer")
    parts = []
    for item in node.sequence(0).items:
        if not isinstance(item, Value):
            raise UnsupportedError("a part of a join is no tensor")
        parts.append(item)
    if not parts:
        raise ModelError("a join of nothing", expected="a sequence that is not empty", found="an empty sequence")
    if node.flag("new_axis"):
        axis = normalize_axis(axis, parts[0].rank + 1)
        parts = [node.emit(Unsqueeze((axis,)), part) for part in parts]
    return node.emit(Concat(axis), *parts) if len(parts) > 1 else node.emit(Identity(), parts[0])


@for_sequences("Optional", since=15)
def import_optional(node: OnnxNode) -> Imported:
    """An optional that holds something is that."""
    return _present(node)


@for_sequences("OptionalGetElement", since=15)
def import_optional_get_element(node: OnnxNode) -> Imported:
    return _present(node)


@for_sequences("OptionalHasElement", since=15)
def import_optional_has_element(node: OnnxNode) -> Value:
    """What is here is there; an operand left out is not."""
    return constant(node.builder, np.array(node.optional(0) is not None))


def _present(node: OnnxNode) -> Imported:
    value: Imported | None = node.optional(0)
    if value is None:
        raise UnsupportedError("an optional is empty")
    return node.emit(Identity(), value) if isinstance(value, Value) else value
