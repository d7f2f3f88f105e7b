"""Determinants of small matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require


@operation
class Determinant(Operation):
    """`y[m] = det(x[m])`, computed in float64. Operands: y [M], x [M, n, n], floats. Any strides."""

    ulp_bound: ClassVar[float] = 64.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x = views
        require(y.rank == 1 and x.rank == 3, f"ranks {y.rank}, {x.rank}")
        require(x.shape == (y.shape[0], x.shape[1], x.shape[1]), f"{y.shape} from {x.shape}")
        require(y.element is x.element and x.element.is_float, f"{y.element} from {x.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x = arrays
        with np.errstate(invalid="ignore"):
            y[...] = np.linalg.det(x.astype(np.float64))
