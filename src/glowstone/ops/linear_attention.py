"""Attention whose keys and values are kept as one matrix, updated step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.attention import default_scale
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import FLOATS
from glowstone.ops.elementwise import Cast, Mul
from glowstone.ops.shape_arithmetic import extents, reshaped, stretched
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

F32 = ElementType.F32
SINGLE = frozenset({F32})
SHORT_FLOATS = FLOATS - {ElementType.F64}
RULES = ("linear", "gated", "delta", "gated_delta")
RANK = 3


@operator
class LinearRecurrence(Operator):
    """A state per head, decayed, corrected and updated by every step's key and value, and read by its queries.

    q [B, T, H, D], k [B, T, G, D], v [B, T, G, E] and state [B, G, D, E] with G a divisor of H; then decay [B, T, G, D]
    where `decays` and rate [B, T, G, 1] where `corrects`. Step by step: state *= exp(decay); v = rate * (v - k state);
    state += k v, an outer product; y [B, T, H, E] = q state. Results: y and the last state.
    """

    operands = (
        *(Operand(name, SINGLE) for name in ("q", "k", "v", "state")),
        Operand("decay or rate", SINGLE, optional=True),
        Operand("rate", SINGLE, optional=True),
    )
    result_names = ("y", "last_state")
    decays: bool = False
    corrects: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        q, k, v, state = operands[:4]
        if any(value.rank != RANK + 1 for value in operands):
            raise ShapeError(
                "operands of a recurrence have other ranks",
                expected=f"rank {RANK + 1}",
                found=", ".join(str(value.type) for value in operands),
            )
        batch, steps, groups, depth = k.shape
        width = v.shape[3]
        expected = [(batch, steps, q.shape[2], depth), (batch, steps, groups, width), (batch, groups, depth, width)]
        found = [value.shape for value in (q, v, state)]
        if self.decays:
            expected.append((batch, steps, groups, depth))
        if self.corrects:
            expected.append((batch, steps, groups, 1))
        found += [value.shape for value in operands[4:]]
        if expected != found or q.shape[2] % groups:
            raise ShapeError("operands of a recurrence do not fit together", expected=expected, found=found)
        return q.type.with_shape((batch, steps, q.shape[2], width)), state.type

    def known(self, *operands: Value | None) -> None:
        """No shape hangs on it."""

    def reference(self, *operands: Array) -> tuple[Array, ...]:
        q, k, v, state = (operand.astype(np.float64) for operand in operands[:4])
        rest = list(operands[4:])
        decay = rest.pop(0).astype(np.float64) if self.decays else None
        rate = rest.pop(0).astype(np.float64) if self.corrects else None
        y = np.zeros((*q.shape[:3], v.shape[3]))
        for step in range(q.shape[1]):
            key, value = k[:, step], v[:, step]
            if decay is not None:
                state = state * np.exp(decay[:, step])[..., None]
            if rate is not None:
                value = rate[:, step] * (value - np.einsum("bgde,bgd->bge", state, key))
            state = state + key[..., None] * value[..., None, :]
            shared = np.repeat(state, q.shape[2] // k.shape[2], axis=1)
            y[:, step] = np.einsum("bhd,bhde->bhe", q[:, step], shared)
        return y.astype(np.float32), state.astype(np.float32)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(82)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        step = (normal(1, 1, 1, 2), normal(1, 1, 1, 2), normal(1, 1, 1, 3), normal(1, 1, 2, 3))
        decay, rate = -np.abs(normal(1, 1, 1, 2)), normal(1, 1, 1, 1)
        return [Sample(cls(), step), Sample(cls(True, True), (*step, decay, rate))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((1, 2, 3, 4), np.float32)
        return [ErrorSample(cls(), (x, x, x, x), "do not fit together")]


@operator
class LinearAttention(Operator):
    """Linear attention with one state per head of the keys. ONNX LinearAttention-27.

    q [B, T, H * D], k [B, T, G * D], v [B, T, G * E], state [B, G, D, E], zeros where left out. The rule says whether
    the state decays by exp(decay), decay [B, T, G * D] or [B, T, G], and whether values are corrected by what the state
    gives for their key, times rate [B, T, G] or [B, T, 1]. Queries are scaled, by 1 / sqrt(D) where `scale` is 0.
    """

    onnx = "LinearAttention-27"
    operands = (
        *(Operand(name, SHORT_FLOATS) for name in ("q", "k", "v")),
        *(Operand(name, SHORT_FLOATS, optional=True) for name in ("state", "decay", "rate")),
    )
    result_names = ("y", "last_state")
    heads: int = 1
    groups: int = 1
    scale: float = 0.0
    rule: str = "gated_delta"

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        q, k, v, state, decay, rate = (*operands, None, None, None)[:6]
        assert q is not None
        assert k is not None
        assert v is not None
        self._check_rule(decay, rate)
        if not q.rank == k.rank == v.rank == RANK:
            raise ShapeError("heads stand side by side", expected="rank 3", found=f"{q.type}, {k.type}, {v.type}")
        batch, steps, features = q.shape
        if features % self.heads or v.shape[2] % self.groups:
            raise ShapeError("features do not split in heads", expected=self.heads, found=f"{q.type}, {v.type}")
        depth, width = features // self.heads, v.shape[2] // self.groups
        if k.shape != (batch, steps, self.groups * depth) or v.shape[:2] != (batch, steps):
            raise ShapeError(
                "queries, keys and values do not fit together",
                expected=[batch, steps, self.groups * depth],
                found=f"{k.type}, {v.type}",
            )
        shape = (batch, self.groups, depth, width)
        if state is not None and state.shape != shape:
            raise ShapeError("the state has another shape", expected=list(shape), found=list(state.shape))
        for value, lasts in ((decay, (self.groups, self.groups * depth)), (rate, (self.groups, 1))):
            if value is not None and value.shape not in [(batch, steps, last) for last in lasts]:
                raise ShapeError("decay or rate does not fit the heads", expected=lasts, found=list(value.shape))
        last_state = TensorType(q.element if state is None else state.element, shape)
        return q.type.with_shape((batch, steps, self.heads * width)), last_state

    def _check_rule(self, decay: Value | None, rate: Value | None) -> None:
        if self.rule not in RULES:
            raise ModelError("the update rule is unknown", expected=", ".join(RULES), found=self.rule)
        if self.groups < 1 or self.heads < 1 or self.heads % self.groups:
            raise ModelError("heads do not share keys", expected=f"a multiple of {self.groups}", found=self.heads)
        if (decay is not None, rate is not None) != (self._decays, self._corrects):
            raise ModelError("decay and rate belong to other rules", expected=self.rule, found=[decay, rate])

    @property
    def _decays(self) -> bool:
        return self.rule.startswith("gated")

    @property
    def _corrects(self) -> bool:
        return self.rule.endswith("delta")

    def _scale(self, features: int) -> float:
        return self.scale or default_scale(features // self.heads)

    def reference(self, *operands: Array | None) -> tuple[Array, ...]:
        q, k, v, state, decay, rate = (*operands, None, None, None)[:6]
        assert q is not None
        assert k is not None
        assert v is not None
        batch, steps, features = q.shape
        depth, width = features // self.heads, v.shape[2] // self.groups
        if state is None:
            state = np.zeros((batch, self.groups, depth, width), q.dtype)
        wide = [array.astype(np.float64).reshape(batch, steps, heads, -1) for array, heads in self._parts(q, k, v)]
        wide[0] = wide[0] * self._scale(features)
        extras = []
        if decay is not None:
            extras.append(np.broadcast_to(decay.reshape(batch, steps, self.groups, -1), wide[1].shape))
        if rate is not None:
            extras.append(np.broadcast_to(rate[..., None], (batch, steps, self.groups, 1)))
        y, last = LinearRecurrence(self._decays, self._corrects).reference(*wide, state, *extras)
        return y.reshape(batch, steps, -1).astype(q.dtype), last.astype(state.dtype)

    def _parts(self, q: Any, k: Any, v: Any) -> tuple[tuple[Any, int], ...]:
        """Queries, keys and values with their numbers of heads."""
        return (q, self.heads), (k, self.groups), (v, self.groups)

    def decompose(self, builder: Builder, *operands: Value | None) -> tuple[Value, ...]:
        q, k, v, state, decay, rate = (*operands, None, None, None)[:6]
        assert q is not None
        assert k is not None
        assert v is not None
        emit, wide = builder.emit, Cast(F32)
        depth, width = q.shape[2] // self.heads, v.shape[2] // self.groups
        places = extents(builder, q, 0, 2)
        sizes = (depth, depth, width)
        split = [
            reshaped(builder, emit(wide, value), places, (heads, size))
            for (value, heads), size in zip(self._parts(q, k, v), sizes, strict=True)
        ]
        split[0] = emit(Mul(), split[0], scalar(builder, self._scale(q.shape[2]), F32))
        element = q.element if state is None else state.element
        if state is None:
            shape = (extents(builder, q, 0, 1), (self.groups, depth, width))
            state = stretched(builder, scalar(builder, 0.0, F32), *shape)
        extras = []
        if decay is not None:
            parted = reshaped(builder, emit(wide, decay), places, (self.groups, decay.shape[2] // self.groups))
            extras.append(stretched(builder, parted, places, (self.groups, depth)))
        if rate is not None:
            parted = reshaped(builder, emit(wide, rate), places, (rate.shape[2], 1))
            extras.append(stretched(builder, parted, places, (self.groups, 1)))
        recurrence = LinearRecurrence(self._decays, self._corrects)
        y, last = builder.emit_node(recurrence, *split, emit(wide, state), *extras).results
        flat = reshaped(builder, y, places, self.heads * width)
        return emit(Cast(q.element), flat), emit(Cast(element), last)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(83)

        def normal(*shape: int) -> Array:
            return (0.5 * random.standard_normal(shape)).astype(np.float32)

        q, k, v, state = normal(2, 3, 16), normal(2, 3, 8), normal(2, 3, 10), normal(2, 2, 4, 5)
        decay, rate = -np.abs(normal(2, 3, 8)), np.abs(normal(2, 3, 2))
        return [
            Sample(cls(4, 2, 0.0, "linear"), (q, k, v)),
            Sample(cls(4, 2, 0.3, "gated"), (q, k, v, state, decay)),
            Sample(cls(4, 2, 0.0, "delta"), (q, k, v, state, None, rate)),
            Sample(cls(4, 2), (q, k, v, state, decay[..., :2], rate[..., :1])),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        q = np.ones((2, 3, 8), np.float32)
        return [
            ErrorSample(cls(2, 2, 0.0, "other"), (q, q, q), "the update rule is unknown"),
            ErrorSample(cls(2, 2), (q, q, q), "belong to other rules"),
            ErrorSample(cls(3, 2, 0.0, "linear"), (q, q, q), "heads do not share keys"),
            ErrorSample(cls(2, 2, 0.0, "linear"), (q, q[..., :4], q), "do not fit together"),
            ErrorSample(cls(2, 2, 0.0, "linear"), (q, q, q, q), "the state has another shape"),
            ErrorSample(cls(2, 2, 0.0, "gated"), (q, q, q, None, q[:1]), "does not fit the heads"),
        ]
