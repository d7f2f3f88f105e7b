"""Attention with its projections, MultiHeadAttention, RotaryEmbedding."""

from __future__ import annotations

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.attention_parts import (
    I64,
    KEYS_AXIS,
    SWAPPED,
    added_to_scores,
    attend,
    check_bias,
    given_scale,
    head_count,
    key_total,
    slices,
    split_heads,
)
from glowstone.importer.rules.microsoft.domain import microsoft, refuse_operands, with_bias
from glowstone.ops import Add, Attention, Cast, Concat, Gather, Iota, MatMul, RotaryEmbedding, Transpose
from glowstone.ops.attention import BIASED
from glowstone.ops.constant import scalar
from glowstone.ops.shape import unsqueeze
from glowstone.ops.shape_arithmetic import extents, reshaped, stretched

PACKED_RANK = 5
"""Of [batch, positions, heads, parts, features]."""
PARTS_AXIS = 3


@microsoft("Attention")
def import_attention(node: OnnxNode) -> Value | tuple[Value, ...]:
    """Attention of x W + b, split in queries, keys and values; the past and present hold keys, then values."""
    projected = with_bias(node, node.emit(MatMul(), node.operand(0), node.operand(1)), node.optional(2))
    length = node.operand(6) if node.flag("past_present_share_buffer") else None
    return projected_attention(node, projected, node.optional(4), (node.optional(3), node.optional(5), length))


def projected_attention(
    node: OnnxNode, projected: Value, cache: Value | None, operands: tuple[Value | None, Value | None, Value | None]
) -> Value | tuple[Value, ...]:
    """y and, where it is wanted, the present of Attention; `operands` as of `_with_masks`.

    Raises:
        UnsupportedError: rotary embedding inside, for which it takes no tables.
    """
    if node.flag("do_rotary"):
        raise node.refuse("do_rotary", 0)
    heads = head_count(node, "num_heads")
    if projected.rank != 3:
        raise ShapeError("x is not of rank 3", expected="[batch, positions, features]", found=str(projected.type))
    sizes = node.integer_list("qkv_hidden_sizes") or (projected.shape[-1] // 3,) * 3
    if len(sizes) != 3 or sizes[0] != sizes[1]:
        raise ModelError(
            "attribute qkv_hidden_sizes is wrong", expected="three, the first two equal", found=list(sizes)
        )
    q, k, v = (split_heads(node, part, heads) for part in slices(node, projected, sizes))
    if cache is not None and cache.rank != PACKED_RANK:
        raise ShapeError(
            "the past is not of rank 5", expected="[2, batch, heads, keys, features]", found=str(cache.type)
        )
    before = (None, None) if cache is None else (_part(node, cache, 0, 0), _part(node, cache, 0, 1))
    operator = Attention(node.flag("unidirectional"), scale=given_scale(node))
    y, keys, values, _ = _with_masks(node, operator, (q, k, v), before, operands)
    if node.result_count == 1:
        return y
    present = node.emit(Concat(0), *(unsqueeze(node.builder, part, (0,)) for part in (keys, values)))
    return y, present


def _part(node: OnnxNode, x: Value, axis: int, index: int) -> Value:
    return node.emit(Gather(axis), x, scalar(node.builder, index, I64))


def _with_masks(
    node: OnnxNode,
    operator: Attention,
    projections: tuple[Value, Value, Value],
    past: tuple[Value | None, Value | None],
    operands: tuple[Value | None, Value | None, Value | None],
) -> tuple[Value, Value, Value, Value]:
    """`attend` with a mask and a bias; `operands` are both and the length of the past inside a shared cache."""
    q, k, v = projections
    mask, bias, length = operands
    if length is None:
        total = key_total(node, k, past[0])
        return attend(
            node, operator, q, k, v, added_to_scores(node, mask, check_bias(node, bias, total), q, total), past
        )
    if mask is not None and mask.rank != 1:
        total = extents(node.builder, mask, mask.rank - 1)
    else:
        total = extents(node.builder, past[0] or k, KEYS_AXIS, KEYS_AXIS + 1)
    return attend(node, operator, q, k, v, added_to_scores(node, mask, bias, q, total), past, length)


@microsoft("MultiHeadAttention")
def import_multi_head_attention(node: OnnxNode) -> tuple[Value, ...]:
    """Attention of queries, keys and values that are projected already; results are y, present keys, values, scores.

    Operands are query, key, value, their bias, the key padding mask, the bias of scores, past keys, past values, and
    the length of the past where these are shared caches.
    """
    refuse_operands(node, {9: "cache_indirection"})
    heads = head_count(node, "num_heads")
    operator = Attention(node.flag("unidirectional"), scale=given_scale(node), scores=BIASED)
    past = (node.optional(6), node.optional(7))
    return _with_masks(
        node, operator, _projections(node, heads), past, (node.optional(4), node.optional(5), node.optional(8))
    )


def _projections(node: OnnxNode, heads: int) -> tuple[Value, Value, Value]:
    """Queries, keys and values with their heads apart and their biases added.

    Keys and values that come with heads apart are those of an encoder, projected before: they get no bias.
    """
    query, key, value = node.operand(0), node.optional(1), node.optional(2)
    if query.rank == PACKED_RANK:
        parts = [_part(node, query, PARTS_AXIS, index) for index in range(3)]
    elif key is not None and key.rank == PACKED_RANK:
        parts = [query, *(_part(node, key, PARTS_AXIS, index) for index in range(2))]
    elif key is not None and value is not None:
        parts = [query, key, value]
    else:
        raise ModelError("keys or values are missing", expected="query, key and value, or packed ones", found="query")
    encoded = parts[1].rank == 4 and key is parts[1]
    biases = _biases(node, [_width(part, heads) for part in parts])
    q = _apart(node, parts[0], heads, biases[0])
    if encoded:
        return q, parts[1], parts[2]
    return q, _apart(node, parts[1], heads, biases[1]), _apart(node, parts[2], heads, biases[2])


def _width(part: Value, heads: int) -> int:
    """Features of all heads."""
    if part.rank not in (3, 4):
        raise ShapeError("heads do not come apart", expected="rank 3 or 4", found=str(part.type))
    return part.shape[2] if part.rank == 3 else heads * part.shape[-1]


def _biases(node: OnnxNode, widths: list[int]) -> list[Value | None]:
    bias = node.optional(3)
    return [None] * len(widths) if bias is None else list(slices(node, bias, widths))


def _apart(node: OnnxNode, x: Value, heads: int, bias: Value | None) -> Value:
    """[batch, heads, positions, features] of [batch, positions, heads * features], or with the last axis split."""
    if x.rank == 3:
        return split_heads(node, with_bias(node, x, bias), heads)
    if bias is not None:
        x = node.emit(Add(), x, reshaped(node.builder, bias, (heads, x.shape[-1])))
    return node.emit(Transpose(SWAPPED), x)


@microsoft("RotaryEmbedding")
def import_rotary_embedding(node: OnnxNode) -> Value:
    """RotaryEmbedding of the default domain; positions are given for all, or as the first one's.

    Attribute `scale` has no effect, as in ONNX Runtime.
    """
    if node.flag("is_packed_batching"):
        raise node.refuse("is_packed_batching", 0)
    x, positions, cosines, sines = (node.operand(index) for index in range(4))
    heads, size = node.integer("num_heads", 0), node.integer("rotary_embedding_dim", 0)
    if x.rank == 3 and not heads:
        if not cosines.rank or not cosines.shape[-1]:
            raise ShapeError("cosines do not say how many features a head has", found=str(cosines.type))
        heads = x.shape[2] // (2 * cosines.shape[-1])
    places = _positions(node, x, node.emit(Cast(I64), positions))
    return node.emit(RotaryEmbedding(node.flag("interleaved"), heads, size), x, cosines, sines, places)


def _positions(node: OnnxNode, x: Value, positions: Value) -> Value:
    """[batch, positions], counted from the first where only that is given."""
    if positions.rank == 2:
        return positions
    builder, axis = node.builder, x.rank - 2
    length = extents(builder, x, axis, axis + 1)
    counted = node.emit(Add(), node.emit(Iota(), length), positions)
    return stretched(builder, counted, extents(builder, x, 0, 1), length)
