"""GroupQueryAttention: attention over a cache, with rotary embedding, windows and sinks."""

from __future__ import annotations

import math

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.attention_parts import (
    I64,
    KEYS_AXIS,
    attend,
    check_bias,
    column,
    given_scale,
    head_count,
    slices,
    split_heads,
    written_cache,
)
from glowstone.importer.rules.microsoft.domain import microsoft, refuse_operands
from glowstone.ops import (
    Add,
    And,
    Attention,
    Cast,
    Concat,
    Iota,
    Less,
    LessOrEqual,
    Maximum,
    RotaryEmbedding,
    Sub,
    Where,
)
from glowstone.ops.attention import BIASED, NORMALIZED
from glowstone.ops.constant import scalar
from glowstone.ops.shape_arithmetic import extents, joined, reshaped, sliced, stretched

Q, K, V, PAST_KEY, PAST_VALUE, LAST, TOTAL, COSINES, SINES, POSITIONS, BIAS, SINK = range(12)
"""Operands; LAST is the last key of each batch, TOTAL how many keys there are at most."""
UNSUPPORTED_OPERANDS = {
    12: "k_scale",
    13: "v_scale",
    14: "q_norm_weight",
    15: "k_norm_weight",
    16: "query_seqlens",
}
UNBOUNDED = -1
BEFORE_SOFTMAX, AFTER_SOFTMAX = 1, 2
"""Values of attribute `qk_output`."""
NO_QUANTIZATION = "NONE"


@microsoft("GroupQueryAttention")
def import_group_query_attention(node: OnnxNode) -> tuple[Value, ...]:
    """Causal attention of new positions over a cache of keys and values, which they are written to first.

    Each batch has keys of its own number; new positions are the last of them. What the present holds behind them has
    no meaning. Results are y, present keys and values, and scores.
    """
    refuse_operands(node, UNSUPPORTED_OPERANDS)
    _check_attributes(node)
    heads, groups = head_count(node, "num_heads"), head_count(node, "kv_num_heads")
    q, k, v = _projections(node, heads, groups)
    step = _Step(node, q, k)
    if node.flag("do_rotary"):
        q, k = step.turned(q), step.turned(k)
    present = [step.present(node.optional(index), new) for index, new in ((PAST_KEY, k), (PAST_VALUE, v))]
    keys, values = (step.in_use(cache) for cache in present)
    added = step.added_to_scores()
    sink = _sink(node, heads)
    if sink is not None:
        keys, values, added = step.with_sink(keys, values, added, sink)
    mode = NORMALIZED if node.integer("qk_output", 0) == AFTER_SOFTMAX else BIASED
    operator = Attention(False, scale=given_scale(node), soft_cap=node.number("softcap", 0.0), scores=mode)
    y, _, _, scores = attend(node, operator, q, keys, values, added)
    return y, *present, sliced(node.builder, scores, 3, 0, step.total)


def _check_attributes(node: OnnxNode) -> None:
    for name in ("k_quant_type", "v_quant_type"):
        if node.text(name, NO_QUANTIZATION) != NO_QUANTIZATION:
            raise node.refuse(name, NO_QUANTIZATION)
    for name in ("kv_cache_bit_width", "sliding_window_cache"):
        if node.integer(name, 0):
            raise node.refuse(name, 0)
    if not node.integer("causal", 1) and node.integer("local_window_size", UNBOUNDED) != UNBOUNDED:
        raise ModelError("a window needs causal attention", expected="local_window_size -1", found="causal 0")


def _projections(node: OnnxNode, heads: int, groups: int) -> tuple[Value, Value, Value]:
    """Queries, keys and values with their heads apart, from operands of their own or packed in the first one."""
    query, key, value = node.operand(Q), node.optional(K), node.optional(V)
    if (key is None) != (value is None):
        raise ModelError("keys and values go together", expected="both, or neither for packed ones", found="one")
    if key is None or value is None:
        all_heads = heads + 2 * groups
        if query.rank != 3 or query.shape[2] % all_heads:
            raise ShapeError(
                "packed heads do not divide the features", expected=f"{all_heads} heads", found=str(query.type)
            )
        features = query.shape[2] // all_heads
        query, key, value = slices(node, query, [count * features for count in (heads, groups, groups)])
    return split_heads(node, query, heads), split_heads(node, key, groups), split_heads(node, value, groups)


def _sink(node: OnnxNode, heads: int) -> Value | None:
    """What the denominator of the softmax has besides the scores, as their logarithm [1, heads, 1, 1]."""
    sink = node.optional(SINK)
    if sink is not None:
        return reshaped(node.builder, sink, (1, heads, 1, 1))
    if node.integer("smooth_softmax", 0) == 1:
        return stretched(node.builder, scalar(node.builder, 0.0, node.operand(Q).element), (1, heads, 1, 1))
    return None


class _Step:
    """The positions of one step: where the new ones go, and what they see.

    `first` [batch] is where the new keys of each batch begin, `places` [batch, 1, queries, 1] where each query stands,
    `count` [batch] how many keys there are with the new ones, `total` [1] the most of any batch, known to the host.
    """

    def __init__(self, node: OnnxNode, q: Value, k: Value) -> None:
        self.node = node
        self.builder = builder = node.builder
        self.q = q
        self.new = extents(builder, k, KEYS_AXIS, KEYS_AXIS + 1)
        last = reshaped(builder, node.emit(Cast(I64), node.operand(LAST)), extents(builder, q, 0, 1))
        self.count = node.emit(Add(), last, scalar(builder, 1, I64))
        # a prompt that is shorter than the longest begins at 0 as well
        self.first = node.emit(Maximum(), node.emit(Sub(), self.count, self.new), scalar(builder, 0, I64))
        rows = reshaped(builder, node.emit(Iota(), self.new), -1, 1)
        self.places = node.emit(Add(), column(node, self.first, q), rows)
        given = node.optional(PAST_KEY)
        self.total = self.new if given is None else reshaped(builder, node.emit(Cast(I64), node.operand(TOTAL)), 1)

    def turned(self, x: Value) -> Value:
        """x under rotary embedding, by the positions given, or where the new ones go."""
        cosines, sines = self.node.operand(COSINES), self.node.operand(SINES)
        positions = self.node.optional(POSITIONS)
        if positions is None:
            positions = reshaped(self.builder, self.places, extents(self.builder, self.q, 0, 1), self.new)
        size = 2 * cosines.shape[-1] if cosines.rank else 0
        operator = RotaryEmbedding(self.node.flag("rotary_interleaved"), 0, size)
        return self.node.emit(operator, x, cosines, sines, positions)

    def present(self, past: Value | None, new: Value) -> Value:
        """The past with new keys or values written in, made longer where it does not hold all."""
        if past is None:
            return new
        return written_cache(self.node, self._lengthened(past, new), new, self.first)

    def _lengthened(self, past: Value, new: Value) -> Value:
        have = extents(self.builder, past, KEYS_AXIS, KEYS_AXIS + 1)
        missing = self.node.emit(Maximum(), self.node.emit(Sub(), self.total, have), scalar(self.builder, 0, I64))
        if not missing.dynamic and missing.known is not None and not missing.known.any():
            return past
        batch_and_groups, features = extents(self.builder, new, 0, 2), extents(self.builder, new, 3)
        shape = joined(self.builder, batch_and_groups, missing, features)
        return self.node.emit(Concat(KEYS_AXIS), past, self._zeros(new, shape))

    def _zeros(self, like: Value, shape: Value) -> Value:
        return stretched(self.builder, scalar(self.builder, 0.0, like.element), shape)

    def in_use(self, cache: Value) -> Value:
        """The first `total` keys or values."""
        return sliced(self.builder, cache, KEYS_AXIS, 0, self.total)

    def added_to_scores(self) -> Value:
        """The bias where a query sees a key, else minus infinity: [batch, 1 or heads, queries, total]."""
        node = self.node
        bias = check_bias(node, node.optional(BIAS), self.total)
        shown = scalar(self.builder, 0.0, self.q.element) if bias is None else bias
        return node.emit(Where(), self._seen(), shown, scalar(self.builder, -math.inf, self.q.element))

    def _seen(self) -> Value:
        node, keys = self.node, self.node.emit(Iota(), self.total)
        if not node.integer("causal", 1):
            unseen = stretched(self.builder, column(node, self.count, self.q), (1, 1), self.new, 1)
            return node.emit(Less(), keys, unseen)
        seen = node.emit(LessOrEqual(), keys, self.places)
        window = node.integer("local_window_size", UNBOUNDED)
        if window == UNBOUNDED:
            return seen
        oldest = node.emit(Sub(), self.places, scalar(self.builder, window, I64))
        return node.emit(And(), seen, node.emit(Less(), oldest, keys))

    def with_sink(self, keys: Value, values: Value, added: Value, sink: Value) -> tuple[Value, Value, Value]:
        """One more key of 0, whose score is the sink, and a value of 0 with it."""
        longer = []
        for x in (keys, values):
            shape = joined(self.builder, extents(self.builder, x, 0, 2), 1, extents(self.builder, x, 3))
            longer.append(self.node.emit(Concat(KEYS_AXIS), x, self._zeros(x, shape)))
        heads = (1, sink.shape[1], 1, 1)
        shape = joined(self.builder, extents(self.builder, self.q, 0, 3), 1)
        scores = self.node.emit(Concat(3), stretched(self.builder, added, heads), stretched(self.builder, sink, shape))
        return longer[0], longer[1], scores
