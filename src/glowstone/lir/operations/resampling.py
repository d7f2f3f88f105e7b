"""Weighted sums of elements at places that a table names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.matmul import wide
from glowstone.lir.strides import has_unit_last_stride
from glowstone.types import ElementType

Y, X, INDICES, WEIGHTS = range(4)


def weight_type(element: ElementType) -> ElementType:
    """The type of the weights of elements: what sums are carried in."""
    return ElementType.F32 if element in (ElementType.F16, ElementType.BF16) else element


@operation
class Resample(Operation):
    """`y[n, c, p, i] = sum over t of weights[n, p, t] * x[n, c, indices[n, p, t], i]`.

    Operands: y [N, C, P, I], x [N, C, A, I], indices [N, P, T] (i64), weights [N, P, T] of x's type (f32 for 16-bit
    floats). An index outside [0, A) adds nothing. Resizing along an axis, sampling on a grid and folding do this.
    """

    ulp_bound: ClassVar[float] = 64.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return operand in (INDICES, WEIGHTS) or has_unit_last_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, indices, weights = views
        require(y.rank == x.rank == 4 and indices.rank == 3, f"ranks {y.rank}, {x.rank}, {indices.rank}")
        require((*y.shape[:2], y.shape[3]) == (*x.shape[:2], x.shape[3]), f"{y.shape} from {x.shape}")
        require(indices.shape == weights.shape and indices.shape[:2] == (y.shape[0], y.shape[2]), f"{indices.shape}")
        require(x.shape[2] > 0 or y.size == 0, "nothing to take elements from")
        require(indices.element is ElementType.I64, f"indices are {indices.element}")
        require(y.element is x.element, f"{y.element} from {x.element}")
        require(weights.element is weight_type(x.element), f"weights of {x.element} are {weights.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, indices, weights = arrays
        if y.size == 0:
            return
        inside = (indices >= 0) & (indices < x.shape[2])
        places = np.where(inside, indices, 0)
        total = np.zeros(y.shape, wide(weights).dtype)
        with np.errstate(all="ignore"):
            for tap in range(indices.shape[2]):
                taken = wide(np.take_along_axis(x, places[:, None, :, tap, None], axis=2))
                term = taken * wide(weights)[:, None, :, tap, None]
                total += np.where(inside[:, None, :, tap, None], term, 0)
            y[...] = total.astype(y.dtype)
