"""Probabilities of many classes from a classifier of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.scalar.coupling import TOLERANCE, coupled
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class PairwiseCoupling(Operator):
    """[rows, classes] from the probabilities of pairs of classes [rows, pairs]: see `scalar.coupling`.

    The pairs are (0, 1), (0, 2) ... (1, 2) ...; each gives the probability of its first class, between 0 and 1.
    """

    operands = (Operand("pairs", frozenset({ElementType.F64})),)
    classes: int = 2

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (pairs,) = operands
        count = math.comb(self.classes, 2)
        if self.classes < 1 or pairs.rank != 2 or pairs.shape[1] != count:
            raise ShapeError("not one number a pair of classes", expected=f"[rows, {count}]", found=str(pairs.type))
        return (pairs.type.with_shape((pairs.shape[0], self.classes)),)

    def reference(self, pairs: Array) -> Array:
        return coupled(pairs, self.classes)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(73)
        shapes = ((2, 5), (3, 7), (6, 4), (4, 0), (1, 3))
        return [
            Sample(cls(classes), (random.uniform(1e-3, 0.999, (rows, math.comb(classes, 2))),), TOLERANCE)
            for classes, rows in shapes
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(3), (np.full((2, 4), 0.5),), "not one number a pair")]
