"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.epilogue import apply_epilogue, extra_count, verify_epilogue
from glowstone.lir.strides import has_vector_stride
from glowstone.scalar import Expression
from glowstone.types import is_float_dtype

LEFT, RIGHT = 1, 2
"""Operand numbers of the matrices."""


@operation
class MatMul(Operation):
    """`y[..., m, n] = epilogue(sum over k of a[..., m, k] * b[..., k, n])`.

    Operands: y, a, b, extras. All of one rank, 2 or more; batch axes of a and b have y's extents (stride 0 where
    broadcast). Any strides.
    """

    epilogue: Expression | None = None
    ulp_bound: ClassVar[float] = 64.0

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT,) + (Access.IN,) * (2 + extra_count(self.epilogue))

    @cached_property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        return tuple((0, 3 + index) for index in range(extra_count(self.epilogue)))

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def is_fast(self, operand: int, view: View) -> bool:
        """The left matrix is read element by element; of the right one rows or columns may be side by side."""
        if operand in (LEFT, RIGHT):
            return operand == LEFT or has_vector_stride(view) or view.strides[-2] == 1
        return has_vector_stride(view)

    def multiply_adds(self, views: Sequence[View]) -> int:
        return views[0].size * views[LEFT].shape[-1]

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, a, b, *extras = views
        require(y.rank == a.rank == b.rank >= 2, f"ranks {y.rank}, {a.rank}, {b.rank}")
        require(y.shape[:-2] == a.shape[:-2] == b.shape[:-2], f"batches {y.shape}, {a.shape}, {b.shape}")
        fits = (a.shape[-2], a.shape[-1], b.shape[-1]) == (y.shape[-2], b.shape[-2], y.shape[-1])
        require(fits, f"cannot multiply {a.shape} by {b.shape} into {y.shape}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, a, b, *extras = arrays
        product = np.matmul(wide(a), wide(b)).astype(y.dtype)
        y[...] = apply_epilogue(self.epilogue, product, extras)


def wide(array: Array) -> Array:
    """Floats in float64, integers as they are: what sums of products are computed in."""
    return array.astype(np.float64) if is_float_dtype(array.dtype) else array
