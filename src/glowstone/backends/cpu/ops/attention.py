"""Attention as one node: the product of queries and keys, a softmax, the product with values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone import scalar
from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.ops import MatMul, Softmax
from glowstone.ops.elementwise import Map
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.types import ElementType, TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]

_F32 = frozenset({ElementType.F32})
FACTORS = 3
"""Operands before the extras of the scores."""


@operator
class FusedAttention(Operator):
    """softmax(scores(q k)) v: q [..., S, D], k [..., D, T], v [..., T, E], then what the scores' expression reads.

    The softmax goes along T. Input 0 of `scores` is the product; extras broadcast to it.
    """

    operands = (
        Operand("q", _F32),
        Operand("k", _F32),
        Operand("v", _F32),
        Operand("extra", _F32, optional=True, variadic=True),
    )
    scores: Expression | None = None

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        q, k, v, *extras = operands
        (scores,) = MatMul().infer(q, k)
        for extra in extras:
            if broadcast_shapes(scores.shape, extra.shape) != scores.shape:
                raise ShapeError(
                    "an operand of the scores is larger than they",
                    expected=list(scores.shape),
                    found=list(extra.shape),
                )
        if self.scores is not None:
            Map(self.scores, 1 + len(extras)).scalar_expression((scores.element, *(one.element for one in extras)))
        if scores.shape[-1] != v.shape[-2] or broadcast_shapes(scores.shape[:-2], v.shape[:-2]) != scores.shape[:-2]:
            raise ShapeError("values do not fit the scores", expected=list(scores.shape), found=list(v.shape))
        return (scores.with_shape((*scores.shape[:-1], v.shape[-1])),)

    def reference(self, *operands: Any) -> Array:
        q, k, v, *extras = operands
        scores = np.asarray(MatMul().reference(q, k))
        if self.scores is not None:
            scores = np.broadcast_to(scalar.evaluate(self.scores, [scores, *extras]), scores.shape)
        return np.asarray(MatMul().reference(Softmax().reference(scores), v))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(17)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        x0, x1 = Input(ElementType.F32, 0), Input(ElementType.F32, 1)
        masked = apply("add", apply("mul", x0, Literal(ElementType.F32, 0.25)), x1)
        return [
            Sample(cls(), (normal(5, 4), normal(4, 7), normal(7, 3))),
            Sample(cls(masked), (normal(2, 3, 5, 16), normal(2, 3, 16, 19), normal(2, 3, 19, 16), normal(2, 1, 1, 19))),
            Sample(cls(masked), (normal(2, 20, 8), normal(1, 8, 33), normal(33, 9), normal(20, 33))),
        ]
