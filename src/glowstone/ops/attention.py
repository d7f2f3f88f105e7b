"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import BOOLS, FLOATS, HALVES
from glowstone.ops.elementwise import Add, And, Cast, Div, Equal, Identity, LessOrEqual, Mul, Pow, Sub, Tanh, Where
from glowstone.ops.iota import Iota
from glowstone.ops.linear import MatMul
from glowstone.ops.normalization import Softmax
from glowstone.ops.operand_checks import require_one_element
from glowstone.ops.reduction import ReduceMax
from glowstone.ops.shape import Concat, Expand, Transpose, unsqueeze
from glowstone.ops.shape_arithmetic import extents, joined, reshaped
from glowstone.types import ElementType, TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]

HEADS_APART = 4
"""Rank of [batch, heads, positions, features]."""
HEADS_TOGETHER = 3
"""Rank of [batch, positions, heads * features]."""
RAW, CAPPED, BIASED, NORMALIZED = range(4)
"""Which scores the fourth result holds."""
UNBOUNDED = -1
DEFAULT_SCALE_EXPONENT = -0.5
"""The scale left out is the number of features to this power."""


def default_scale(features: int) -> float:
    """The scale left out. Without features all scores are zero, whatever it is."""
    return float(max(features, 1) ** DEFAULT_SCALE_EXPONENT)


@operator
class Attention(Operator):
    """softmax(q k^T * scale + bias) v, per head. ONNX Attention-23.

    q [B, H, S, D], k [B, G, T, D], v [B, G, T, E] with G a divisor of H, or all of rank 3 with the heads side by side
    on the last axis. The mask is added, or says where to look if it is bool; what it lacks at the end is not looked at.
    `past_key` and `past_value` stand before k and v. `valid` counts the keys of each batch that are no padding.
    `causal` lets position i see up to i plus the number of keys before the queries; `left` and `right` bound how far a
    position sees. A position that sees nothing gives zeros. The fourth result are the scores, by `scores`: the raw
    products, after the soft cap, after the bias, or normalized.
    """

    onnx = "Attention-23"
    operands = (
        Operand("q", FLOATS),
        Operand("k", FLOATS),
        Operand("v", FLOATS),
        Operand("mask", FLOATS | BOOLS, optional=True),
        Operand("past_key", FLOATS, optional=True),
        Operand("past_value", FLOATS, optional=True),
        Operand("valid", frozenset({ElementType.I64}), optional=True),
    )
    result_names = ("y", "present_key", "present_value", "scores")
    causal: bool = False
    q_heads: int | None = None
    kv_heads: int | None = None
    scale: float | None = None
    soft_cap: float = 0.0
    scores: int = RAW
    precision: ElementType | None = None
    left: int = UNBOUNDED
    right: int = UNBOUNDED

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        q, k, v, mask, past_key, past_value, valid = _all_operands(operands)
        assert q is not None
        assert k is not None
        assert v is not None
        require_one_element(q, k, past_key)
        require_one_element(v, past_value)
        if not q.rank == k.rank == v.rank or q.rank not in (HEADS_APART, HEADS_TOGETHER):
            raise ShapeError(
                "ranks do not fit attention", expected="rank 3 or 4", found=f"{q.type}, {k.type}, {v.type}"
            )
        batch, heads, queries, depth = self._apart(q.shape, self.q_heads)
        _, groups, keys, key_depth = self._apart(k.shape, self.kv_heads)
        value_batch, value_groups, values, width = self._apart(v.shape, self.kv_heads)
        fits = depth == key_depth and groups == value_groups and keys == values and batch == value_batch == k.shape[0]
        if not fits or groups < 1 or heads % groups:
            raise ShapeError(
                "queries, keys and values do not fit together",
                expected="batch, features and heads that go together",
                found=f"{q.type}, {k.type}, {v.type}",
            )
        if (past_key is None) != (past_value is None) or (past_key is not None and valid is not None):
            raise ModelError("past keys and values go together, and without counts of valid keys", found=self.name)
        total = keys
        if past_key is not None and past_value is not None:
            length = past_key.shape[2] if past_key.rank == HEADS_APART else 0
            total += length
            expected = [(batch, groups, length, size) for size in (depth, width)]
            if [past_key.shape, past_value.shape] != expected:
                raise ShapeError("the past does not fit", expected=expected, found=[past_key.type, past_value.type])
        self._check_mask(mask, q, (batch, heads, queries, total))
        shape = (batch, heads, queries, width) if q.rank == HEADS_APART else (batch, queries, heads * width)
        return (
            q.type.with_shape(shape),
            k.type.with_shape((batch, groups, total, depth)),
            v.type.with_shape((batch, groups, total, width)),
            q.type.with_shape((batch, heads, queries, total)),
        )

    def _check_mask(self, mask: Value | None, q: Value, shape: tuple[int, ...]) -> None:
        if mask is None:
            return
        if mask.element is not ElementType.BOOL and mask.element is not q.element:
            raise ModelError("the mask is of another type than q", expected=f"bool or {q.element}", found=mask.element)
        fits = mask.rank >= 1 and mask.shape[-1] <= shape[-1]
        if not fits or broadcast_shapes((*mask.shape[:-1], shape[-1]), shape) != shape:
            raise ShapeError("the mask does not broadcast to the scores", expected=list(shape), found=list(mask.shape))

    def _apart(self, shape: tuple[int, ...], heads: int | None) -> tuple[int, ...]:
        """[batch, heads, positions, features] of a shape of either rank."""
        if len(shape) == HEADS_APART:
            return shape
        if not heads or shape[2] % heads:
            raise ShapeError("features do not split in heads", expected=f"a multiple of {heads}", found=list(shape))
        return (shape[0], heads, shape[1], shape[2] // heads)

    def factor(self, depth: int) -> float:
        """What products of queries and keys are multiplied with."""
        return default_scale(depth) if self.scale is None else self.scale

    def reference(self, *operands: Array | None) -> tuple[Array, ...]:
        given = (*operands, None, None, None, None)
        q, k, v = (np.asarray(operand) for operand in given[:3])
        mask, past_key, past_value, valid = given[3:7]
        element = q.dtype
        q4 = self._split_array(q, self.q_heads)
        present_key, present_value = (self._split_array(array, self.kv_heads) for array in (k, v))
        if past_key is not None and past_value is not None:
            present_key = np.concatenate([past_key, present_key], axis=2)
            present_value = np.concatenate([past_value, present_value], axis=2)
        repeats = q4.shape[1] // present_key.shape[1]
        keys, values = (np.repeat(array.astype(np.float64), repeats, 1) for array in (present_key, present_value))
        scores = [q4.astype(np.float64) @ keys.swapaxes(-1, -2) * self.factor(q4.shape[-1])]
        scores.append(self.soft_cap * np.tanh(scores[0] / self.soft_cap) if self.soft_cap > 0 else scores[0])
        before = 0 if past_key is None else past_key.shape[2]
        bias = self._bias_array(scores[0].shape, mask, valid, before)
        scores.append(scores[1] + bias)
        blind = np.broadcast_to(np.isneginf(bias).all(axis=-1, keepdims=True), scores[0].shape)
        with np.errstate(all="ignore"):
            powers = np.exp(scores[2] - scores[2].max(axis=-1, keepdims=True))
            scores.append(np.where(blind, 0.0, powers / powers.sum(axis=-1, keepdims=True)))
        y = scores[NORMALIZED] @ values
        if q.ndim == HEADS_TOGETHER:
            y = y.swapaxes(1, 2).reshape(*q.shape[:2], -1)
        return y.astype(element), present_key, present_value, scores[self.scores].astype(element)

    def _split_array(self, x: Array, heads: int | None) -> Array:
        if x.ndim == HEADS_APART:
            return x
        assert heads is not None
        return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)

    def _bias_array(self, shape: tuple[int, ...], mask: Array | None, valid: Array | None, before: int) -> Array:
        """What is added to scores of this shape."""
        batch, _, queries, total = shape
        first = np.full(batch, before) if valid is None else valid - queries
        rows = np.arange(queries)[:, None] + first.reshape(-1, 1, 1, 1)
        columns = np.arange(total)
        seen = np.ones((batch, 1, queries, total), np.bool_)
        if self.causal:
            seen &= columns <= rows
        if self.left != UNBOUNDED:
            seen &= rows - columns <= self.left
        if self.right != UNBOUNDED:
            seen &= columns - rows <= self.right
        if valid is not None:
            seen &= columns < valid.reshape(-1, 1, 1, 1)
        added: Array = np.zeros(total)
        if mask is not None:
            added = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask.astype(np.float64)
            width = [(0, 0)] * (added.ndim - 1) + [(0, total - added.shape[-1])]
            added = np.pad(added, width, constant_values=-np.inf)
        return np.asarray(np.where(seen, added, -np.inf))

    def decompose(self, builder: Builder, *operands: Value | None) -> tuple[Value, ...]:
        return _Decomposition(self, builder).run(*_all_operands(operands))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(51)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        q, k, v = normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 6)
        mask = random.uniform(size=(3, 5)) > 0.4
        mask[1] = False
        return [
            Sample(cls(), (normal(2, 3, 4, 8), normal(2, 3, 6, 8), normal(2, 3, 6, 8))),
            Sample(cls(scores=NORMALIZED), (q, k, v, mask)),
            Sample(cls(True, soft_cap=2.0, scores=CAPPED), (q, k, v, normal(2, 1, 3, 5))),
            Sample(cls(scale=0.3, scores=BIASED), (q, k, v, None, normal(2, 2, 4, 8), normal(2, 2, 4, 6))),
            Sample(cls(q_heads=4, kv_heads=2), (normal(2, 3, 32), normal(2, 5, 16), normal(2, 5, 12), normal(3, 5))),
            Sample(cls(), (q, k, v, None, None, None, np.array([5, 2]))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        q, k = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 5, 4), np.float32)
        return [
            ErrorSample(cls(), (q, k[..., 0], k), "ranks do not fit attention"),
            ErrorSample(cls(), (q, k[..., :3], k), "do not fit together"),
            ErrorSample(cls(), (q, k, k, np.ones((2, 5), np.bool_)), "broadcast"),
            ErrorSample(cls(), (q, k, k, np.ones((3, 5))), "the mask is of another type"),
            ErrorSample(cls(), (q, k, k, None, k), "past keys and values go together"),
            ErrorSample(cls(), (q[0], k[0], k[0]), "features do not split in heads"),
        ]


def _all_operands(operands: Sequence[Value | None]) -> tuple[Value | None, ...]:
    return (*operands, None, None, None, None)[: len(Attention.operands)]


@dataclass(frozen=True)
class _Decomposition:
    """One attention in simpler operators.

    Floats of 16 bits are computed as float32: quicker, and nothing is rounded between the products.
    """

    operator: Attention
    builder: Builder

    def run(self, *operands: Value | None) -> tuple[Value, ...]:
        q, k, v, mask, past_key, past_value, valid = operands
        assert q is not None
        assert k is not None
        assert v is not None
        emit = self.builder.emit
        wide = Cast(ElementType.F32 if q.element in HALVES else q.element)
        queries = emit(wide, self._split(q, self.operator.q_heads))
        present_key = self._present(past_key, self._split(k, self.operator.kv_heads))
        present_value = self._present(past_value, self._split(v, self.operator.kv_heads))
        keys, values = emit(wide, present_key), emit(wide, present_value)
        if mask is not None and mask.element is not ElementType.BOOL:
            mask = emit(wide, mask)
        scores = [self._products(queries, keys)]
        scores.append(self._capped(scores[RAW]))
        bias = self._bias(queries, keys, mask, valid, past_key)
        scores.append(scores[CAPPED] if bias is None else emit(Add(), scores[CAPPED], bias))
        scores.append(self._normalized(scores[BIASED]))
        y = self._per_group(scores[NORMALIZED], values)
        if bias is not None and self._may_be_blind(mask, valid):
            blind = emit(Equal(), emit(ReduceMax((-1,), True), bias), scalar(self.builder, -math.inf, wide.to))
            y = self._zero_where(blind, y)
            if self.operator.scores == NORMALIZED:
                scores[NORMALIZED] = self._zero_where(blind, scores[NORMALIZED])
        if q.rank == HEADS_TOGETHER:
            y = emit(Transpose((0, 2, 1, 3)), y)
            y = reshaped(self.builder, y, extents(self.builder, y, 0, 2), -1)
        narrow = Cast(q.element)
        chosen = emit(narrow, scores[self.operator.scores])
        return emit(narrow, y), emit(Identity(), present_key), emit(Identity(), present_value), chosen

    def _split(self, x: Value, heads: int | None) -> Value:
        """The heads on an axis of their own, before the positions."""
        if x.rank == HEADS_APART:
            return x
        assert heads is not None
        apart = reshaped(self.builder, x, extents(self.builder, x, 0, 2), (heads, x.shape[2] // heads))
        return self.builder.emit(Transpose((0, 2, 1, 3)), apart)

    def _present(self, past: Value | None, new: Value) -> Value:
        return new if past is None else self.builder.emit(Concat(2), past, new)

    def _products(self, q: Value, k: Value) -> Value:
        """Products of queries, scaled, and keys."""
        scaled = self.builder.emit(Mul(), q, self._factor(q))
        return self._per_group(scaled, self.builder.emit(Transpose((0, 1, 3, 2)), k))

    def _factor(self, q: Value) -> Value:
        """The scale; where it follows from a number of features that may change, the host computes it."""
        if self.operator.scale is not None or not q.dynamic:
            return scalar(self.builder, self.operator.factor(q.shape[-1]), q.element)
        depth = self.builder.emit(Cast(ElementType.F64), extents(self.builder, q, 3))
        factor = self.builder.emit(Pow(), depth, scalar(self.builder, DEFAULT_SCALE_EXPONENT, ElementType.F64))
        return self.builder.emit(Cast(q.element), factor)

    def _per_group(self, left: Value, right: Value) -> Value:
        """A product per head; heads of the left factor share those of the right in runs, without a copy of them."""
        heads, groups = left.shape[1], right.shape[1]
        if heads == groups:
            return self.builder.emit(MatMul(), left, right)
        batch, matrix = extents(self.builder, left, 0, 1), extents(self.builder, left, 2)
        grouped = reshaped(self.builder, left, batch, (groups, heads // groups), matrix)
        product = self.builder.emit(MatMul(), grouped, unsqueeze(self.builder, right, (2,)))
        return reshaped(self.builder, product, batch, heads, extents(self.builder, product, 3))

    def _capped(self, scores: Value) -> Value:
        if self.operator.soft_cap <= 0:
            return scores
        cap = scalar(self.builder, self.operator.soft_cap, scores.element)
        bounded = self.builder.emit(Tanh(), self.builder.emit(Div(), scores, cap))
        return self.builder.emit(Mul(), bounded, cap)

    def _may_be_blind(self, mask: Value | None, valid: Value | None) -> bool:
        """Whether a position may see nothing; one that only looks back sees itself."""
        windowed = self.operator.left != UNBOUNDED or self.operator.right != UNBOUNDED
        return mask is not None or valid is not None or windowed

    def _bias(self, q: Value, k: Value, mask: Value | None, valid: Value | None, past: Value | None) -> Value | None:
        """What is added to the scores: the mask, and minus infinity at what is not seen. None for nothing."""
        emit = self.builder.emit
        seen = self._seen(q, k, valid, past)
        added = None if mask is None else self._whole_mask(mask, k)
        if added is not None and added.element is ElementType.BOOL:
            seen = added if seen is None else emit(And(), seen, added)
            added = None
        if seen is None:
            return added
        none = scalar(self.builder, -math.inf, q.element)
        return emit(Where(), seen, scalar(self.builder, 0.0, q.element) if added is None else added, none)

    def _whole_mask(self, mask: Value, k: Value) -> Value:
        """The mask, with what it lacks at its end filled in."""
        if mask.shape[-1] == k.shape[2] and not (mask.dynamic or k.dynamic):
            return mask
        missing = self.builder.emit(Sub(), extents(self.builder, k, 2, 3), extents(self.builder, mask, mask.rank - 1))
        shape = joined(self.builder, extents(self.builder, mask, 0, mask.rank - 1), missing)
        fill = scalar(self.builder, False if mask.element is ElementType.BOOL else -math.inf, mask.element)
        return self.builder.emit(Concat(-1), mask, self.builder.emit(Expand(), fill, shape))

    def _seen(self, q: Value, k: Value, valid: Value | None, past: Value | None) -> Value | None:
        """Where queries see keys by causality, windows and padding; None where they see all."""
        emit, operator = self.builder.emit, self.operator
        columns = emit(Iota(), extents(self.builder, k, 2, 3))
        conditions: list[Value] = []
        if operator.causal or operator.left != UNBOUNDED or operator.right != UNBOUNDED:
            rows = self._query_positions(q, valid, past)
            ahead = emit(Sub(), columns, rows)
            if operator.causal:
                conditions.append(emit(LessOrEqual(), ahead, scalar(self.builder, 0, ElementType.I64)))
            if operator.left != UNBOUNDED:
                limit = scalar(self.builder, -operator.left, ElementType.I64)
                conditions.append(emit(LessOrEqual(), limit, ahead))
            if operator.right != UNBOUNDED:
                conditions.append(emit(LessOrEqual(), ahead, scalar(self.builder, operator.right, ElementType.I64)))
        if valid is not None:
            last = emit(Sub(), valid, scalar(self.builder, 1, ElementType.I64))
            conditions.append(emit(LessOrEqual(), columns, unsqueeze(self.builder, last, (1, 2, 3))))
        seen = conditions[0] if conditions else None
        for condition in conditions[1:]:
            assert seen is not None
            seen = emit(And(), seen, condition)
        return seen

    def _query_positions(self, q: Value, valid: Value | None, past: Value | None) -> Value:
        """Where each query stands among the keys, as a column (of each batch)."""
        emit = self.builder.emit
        count = extents(self.builder, q, 2, 3)
        rows = unsqueeze(self.builder, emit(Iota(), count), (1,))
        if past is not None:
            return emit(Add(), rows, extents(self.builder, past, 2, 3))
        if valid is not None:
            return emit(Add(), rows, unsqueeze(self.builder, emit(Sub(), valid, count), (1, 2, 3)))
        return rows

    def _normalized(self, scores: Value) -> Value:
        """Softmax along the keys: NaN for a query that sees none."""
        emit, element = self.builder.emit, scores.element
        precision = self.operator.precision or element
        return emit(Cast(element), emit(Softmax(-1), emit(Cast(precision), scores)))

    def _zero_where(self, blind: Value, x: Value) -> Value:
        return self.builder.emit(Where(), blind, scalar(self.builder, 0.0, x.element), x)
