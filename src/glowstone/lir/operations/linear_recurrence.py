"""The recurrence of linear attention: all steps as one instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.strides import has_unit_last_stride
from glowstone.types import ElementType

Y, LAST, Q, K, V, STATE, FIRST_EXTRA = range(7)
"""Operand numbers; decay, then rate follow where there are such."""
RANK = 4


@operation
class LinearRecurrence(Operation):
    """Step by step: `state *= exp(decay)`, `v = rate * (v - k state)`, `state += k v`, `y = q state`.

    Operands: y [B, T, H, E], last state [B, G, D, E], q [B, T, H, D], k [B, T, G, D], v [B, T, G, E], state
    [B, G, D, E], then decay [B, T, G, D] where `decays`, and rate [B, T, G, 1] where `corrects`; float32. Runs of H / G
    heads of y and q share a state.
    """

    decays: bool
    corrects: bool
    ulp_bound: ClassVar[float] = 1024.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.OUT) + (Access.IN,) * (4 + self.decays + self.corrects)

    def accepts(self, operand: int, view: View) -> bool:
        """Queries, keys, decays and rates are read one by one, the others in rows."""
        return operand in (Q, K) or operand >= FIRST_EXTRA or has_unit_last_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, last, q, k, v, state, *extras = views
        require(all(view.rank == RANK and view.element is ElementType.F32 for view in views), "float32 of rank 4")
        batch, steps, heads, width = y.shape
        groups, depth = k.shape[2:]
        require(groups > 0 and heads % groups == 0, f"{heads} heads share {groups}")
        require(q.shape == (batch, steps, heads, depth), f"queries {q.shape} for {y.shape}")
        require(k.shape[:2] == v.shape[:2] == (batch, steps), f"{k.shape}, {v.shape} for {y.shape}")
        require(v.shape[2:] == (groups, width), f"values {v.shape} for {y.shape}")
        require(last.shape == state.shape == (batch, groups, depth, width), f"states {last.shape}, {state.shape}")
        sizes = ((depth,) if self.decays else ()) + ((1,) if self.corrects else ())
        for extra, size in zip(extras, sizes, strict=True):
            require(extra.shape == (batch, steps, groups, size), f"decay or rate {extra.shape}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, last, q, k, v, first, *extras = arrays
        state = first.astype(np.float64)
        shared = y.shape[2] // k.shape[2]
        for step in range(y.shape[1]):
            key, value = k[:, step].astype(np.float64), v[:, step].astype(np.float64)
            if self.decays:
                state = state * np.exp(extras[0][:, step].astype(np.float64))[..., None]
            if self.corrects:
                value = extras[-1][:, step] * (value - np.matmul(key[..., None, :], state)[..., 0, :])
            state = state + key[..., None] * value[..., None, :]
            y[:, step] = np.matmul(q[:, step, :, None, :], np.repeat(state, shared, axis=1))[..., 0, :]
        last[...] = state
