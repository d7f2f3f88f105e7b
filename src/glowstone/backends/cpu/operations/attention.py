"""Attention as one instruction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.epilogue import apply_epilogue, extra_count
from glowstone.lir.strides import has_vector_stride
from glowstone.scalar import Expression

Y, Q, K, V, FIRST_EXTRA = range(5)


@operation
class FusedAttention(Operation):
    """`y = softmax(scores(q k)) v`, where the softmax goes along the keys and `scores` is an epilogue of q k.

    Operands: y [..., S, E], q [..., S, D], k [..., D, T], v [..., T, E], extras of the scores [..., S, T]. All of one
    rank, 2 or more, with y's batch extents (stride 0 where broadcast).
    """

    scores: Expression | None = None
    ulp_bound: ClassVar[float] = 256.0

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT,) + (Access.IN,) * (3 + extra_count(self.scores))

    def accepts(self, operand: int, view: View) -> bool:
        """Results and extras are written and read in vectors; the factors have any strides."""
        return operand in (Q, K, V) or has_vector_stride(view)

    def is_fast(self, operand: int, view: View) -> bool:
        """Queries are read element by element; of the others rows or columns may be side by side."""
        if operand in (K, V):
            return has_vector_stride(view) or view.strides[-2] == 1
        return operand == Q or has_vector_stride(view)

    def multiply_adds(self, views: Sequence[View]) -> int:
        y, q, k = views[:3]
        return (y.size // max(y.shape[-1], 1)) * k.shape[-1] * (q.shape[-1] + y.shape[-1])

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, q, k, v, *extras = views
        require(y.rank == q.rank == k.rank == v.rank >= 2, f"ranks {y.rank}, {q.rank}, {k.rank}, {v.rank}")
        batch, (queries, width) = y.shape[:-2], y.shape[-2:]
        depth, keys = k.shape[-2:]
        expected = ((*batch, queries, depth), (*batch, depth, keys), (*batch, keys, width))
        require((q.shape, k.shape, v.shape) == expected, f"{y.shape} from {q.shape}, {k.shape}, {v.shape}")
        for extra in extras:
            require(extra.shape == (*batch, queries, keys), f"extra {extra.shape} for {(*batch, queries, keys)}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, q, k, v, *extras = arrays
        products = np.matmul(q.astype(np.float64), k.astype(np.float64)).astype(y.dtype)
        scores = np.asarray(apply_epilogue(self.scores, products, extras)).astype(np.float64)
        if scores.size:
            with np.errstate(invalid="ignore"):
                powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights = powers / powers.sum(axis=-1, keepdims=True)
            y[...] = np.matmul(weights, v.astype(np.float64))
        else:
            y[...] = 0
