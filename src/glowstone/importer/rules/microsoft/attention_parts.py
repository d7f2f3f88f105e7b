"""What the attention operators of ONNX Runtime share: heads, masks, caches.

q is [batch, heads, queries, features], k and v are [batch, groups, keys, features]; scores are [batch, heads, queries,
total], total being the keys of the past and the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.domain import required_integer
from glowstone.ops import (
    Add,
    And,
    Attention,
    Cast,
    Greater,
    GreaterOrEqual,
    Iota,
    Less,
    Mul,
    TensorScatter,
    Transpose,
    Where,
)
from glowstone.ops.constant import scalar
from glowstone.ops.shape_arithmetic import Extents, extents, reshaped, sliced, stretched, vector
from glowstone.types import ElementType

I64 = ElementType.I64
MASK_FILTER_VALUE = -10000.0
"""What is added to scores that a mask hides, where attribute `mask_filter_value` is left out."""
KEYS_AXIS = 2
"""Of k, v and caches."""
SWAPPED = (0, 2, 1, 3)
"""Heads before or behind positions."""


def head_count(node: OnnxNode, name: str) -> int:
    """An attribute that counts heads.

    Raises:
        ModelError: it is missing, or less than 1.
    """
    count = required_integer(node, name)
    if count < 1:
        raise ModelError(f"attribute {name} is no number of heads", expected="1 or more", found=count)
    return count


def given_scale(node: OnnxNode) -> float | None:
    """Attribute `scale`; None, for the number of features to the power -1/2, where it is 0 or left out."""
    return node.number("scale", 0.0) or None


def split_heads(node: OnnxNode, x: Value, heads: int) -> Value:
    """[batch, positions, heads * features] with the heads on an axis of their own before the positions.

    Raises:
        ShapeError: another rank, or features that do not split.
        ModelError: elements that are no floats.
    """
    if not x.element.is_float:
        raise ModelError("attention is not of floats", expected="floats", found=x.element)
    if x.rank != 3 or x.shape[2] % heads:
        raise ShapeError("features do not split in heads", expected=f"rank 3, {heads} heads", found=str(x.type))
    apart = reshaped(node.builder, x, extents(node.builder, x, 0, 2), (heads, x.shape[2] // heads))
    return node.emit(Transpose(SWAPPED), apart)


def join_heads(node: OnnxNode, x: Value) -> Value:
    """The reverse of `split_heads`."""
    heads, features = x.shape[1], x.shape[3]
    behind = node.emit(Transpose(SWAPPED), x)
    return reshaped(node.builder, behind, extents(node.builder, behind, 0, 2), heads * features)


def slices(node: OnnxNode, x: Value, sizes: Sequence[int]) -> list[Value]:
    """Parts of these sizes along the last axis."""
    if not x.rank or sum(sizes) != x.shape[-1]:
        raise ShapeError("parts do not fill the last axis", expected=list(sizes), found=str(x.type))
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return [sliced(node.builder, x, x.rank - 1, end - size, end) for size, end in zip(sizes, ends, strict=True)]


def key_total(node: OnnxNode, k: Value, past: Value | None) -> Value:
    """The extent [total] as a vector that the host knows."""
    new = extents(node.builder, k, KEYS_AXIS, KEYS_AXIS + 1)
    return new if past is None else node.emit(Add(), extents(node.builder, past, KEYS_AXIS, KEYS_AXIS + 1), new)


def column(node: OnnxNode, numbers: Value, q: Value) -> Value:
    """One number per batch as int64 [batch, 1, 1, 1]."""
    wide = node.emit(Cast(I64), numbers)
    return reshaped(node.builder, wide, extents(node.builder, q, 0, 1), (1, 1, 1))


def visible_keys(node: OnnxNode, mask: Value, q: Value, total: Extents) -> Value:
    """Where a mask of integers lets look, as bool that broadcasts to the scores.

    Forms, by rank: 1, the ends of the keys of each batch, those and their starts (2 batch), or those and running sums
    (3 batch + 2); 2, [batch, total], not 0 where seen; 3, [batch, queries, total]; 4, [batch, 1, most, most], of which
    queries are the rows before `total`.

    Raises:
        ShapeError: none of these.
    """
    if mask.rank == 1:
        return _between_bounds(node, mask, q, total)
    builder = node.builder
    batch, queries = extents(builder, q, 0, 1), extents(builder, q, 2, 3)
    if mask.rank == 4:
        first = node.emit(Add(), _as_vector(node, total), node.emit(Mul(), queries, scalar(builder, -1, I64)))
        mask = sliced(builder, sliced(builder, mask, 2, first, total), 3, 0, total)
    elif mask.rank == 3:
        mask = reshaped(builder, mask, batch, 1, queries, total)
    elif mask.rank == 2:
        mask = reshaped(builder, mask, batch, (1, 1), total)
    else:
        raise ShapeError("the mask has none of the known forms", expected="rank 1 to 4", found=str(mask.type))
    return node.emit(Greater(), mask, scalar(builder, 0, mask.element))


def _as_vector(node: OnnxNode, extent: Extents) -> Value:
    if isinstance(extent, Value):
        return extent
    return vector(node.builder, extent if isinstance(extent, tuple) else (extent,))


def _between_bounds(node: OnnxNode, mask: Value, q: Value, total: Extents) -> Value:
    builder, batch = node.builder, q.shape[0]
    sizes = {batch: (1, 0), 2 * batch: (2, 0), 3 * batch + 2: (3, 2)}
    if mask.shape[0] not in sizes:
        raise ShapeError("the mask has none of the known forms", expected=f"{list(sizes)} bounds", found=str(mask.type))
    factor, more = sizes[mask.shape[0]]
    count = extents(builder, q, 0, 1)
    size = node.emit(Add(), node.emit(Mul(), count, vector(builder, (factor,))), vector(builder, (more,)))
    bounds = reshaped(builder, mask, size)  # which holds other shapes to the form
    positions = node.emit(Iota(), _as_vector(node, total))
    seen = node.emit(Less(), positions, column(node, sliced(builder, bounds, 0, 0, count), q))
    if (factor, more) != (2, 0):
        return seen
    starts = column(node, sliced(builder, bounds, 0, count, size), q)
    return node.emit(And(), seen, node.emit(GreaterOrEqual(), positions, starts))


def added_to_scores(node: OnnxNode, mask: Value | None, bias: Value | None, q: Value, total: Extents) -> Value | None:
    """What masks and biases add to the scores; None for nothing."""
    if mask is None:
        return bias
    shown = scalar(node.builder, 0.0, q.element)
    hidden = scalar(node.builder, node.number("mask_filter_value", MASK_FILTER_VALUE), q.element)
    added = node.emit(Where(), visible_keys(node, mask, q, total), shown, hidden)
    return added if bias is None else node.emit(Add(), added, bias)


def check_bias(node: OnnxNode, bias: Value | None, total: Value) -> Value | None:
    """A bias of the scores, held to the number of keys: a shorter one would not be refused later."""
    if bias is None:
        return None
    if bias.rank != 4:
        raise ShapeError(
            "the attention bias is not of rank 4", expected="[batch, heads, queries, total]", found=str(bias.type)
        )
    return reshaped(node.builder, bias, extents(node.builder, bias, 0, 3), total)


def written_cache(node: OnnxNode, cache: Value, new: Value, starts: Value) -> Value:
    """A cache [batch, groups, most, features] with new keys or values written from `starts` [batch] on."""
    return node.emit(TensorScatter(KEYS_AXIS), cache, new, starts)


def same_for_batches(node: OnnxNode, number: Value, q: Value) -> Value:
    """A number of one element, as int64 [batch]."""
    if number.type.size != 1:
        raise ShapeError("not one number", expected="one element", found=str(number.type))
    wide = reshaped(node.builder, node.emit(Cast(I64), number), 1)
    return stretched(node.builder, wide, extents(node.builder, q, 0, 1))


def attend(
    node: OnnxNode,
    operator: Attention,
    q: Value,
    k: Value,
    v: Value,
    added: Value | None,
    past: tuple[Value | None, Value | None] = (None, None),
    length: Value | None = None,
) -> tuple[Value, Value, Value, Value]:
    """Attention's y with the heads joined, present keys and values, and scores.

    `past` stands before k and v; or, where `length` is given, is a cache that k and v are written to from there on.
    """
    if length is None:
        y, keys, values, scores = node.builder.emit_node(operator, q, k, v, added, *past).results
        return join_heads(node, y), keys, values, scores
    past_key, past_value = past
    if past_key is None or past_value is None:
        raise ModelError("a cache is missing", expected="past keys and values beside the length of the past")
    starts = same_for_batches(node, length, q)
    keys, values = written_cache(node, past_key, k, starts), written_cache(node, past_value, v, starts)
    valid = node.emit(Add(), starts, extents(node.builder, k, KEYS_AXIS, KEYS_AXIS + 1))
    y, _, _, scores = node.builder.emit_node(operator, q, keys, values, added, None, None, valid).results
    return join_heads(node, y), keys, values, scores
