"""Probabilities of classes from those of pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.scalar.coupling import coupled
from glowstone.types import ElementType


@operation
class PairwiseCoupling(Operation):
    """`y[n]` are the probabilities of classes that fit those of pairs of classes, `x[n]`, best.

    Operands: y [N, classes] and x [N, pairs], of f64. See `scalar.coupling`.
    """

    ulp_bound: ClassVar[float] = 512.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x = views
        require(y.rank == x.rank == 2 and x.shape == (y.shape[0], math.comb(y.shape[1], 2)), f"{y.shape}, {x.shape}")
        require(y.element is x.element is ElementType.F64, f"{y.element} from {x.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x = arrays
        y[...] = coupled(x, y.shape[1])
