"""Matrix product with weights packed ahead."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.convolution import WEIGHTS
from glowstone.lir.operations.epilogue import apply_epilogue, extra_count, verify_epilogue
from glowstone.lir.operations.matmul import wide
from glowstone.lir.strides import has_unit_last_stride, is_epilogue_operand
from glowstone.scalar import Expression


@operation
class PackedMatMul(Operation):
    """`y[m, n] = epilogue(sum over k of a[m, k] * b[n / panel][k][n % panel])`.

    Operands: y [M, N], a [M, K], b [ceil(N / panel), K, panel] (zero beyond N), extras [M, N].
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
        if operand == WEIGHTS:
            return view.is_contiguous
        return is_epilogue_operand(view) if operand > WEIGHTS else has_unit_last_stride(view)

    def multiply_adds(self, views: Sequence[View]) -> int:
        return views[0].size * views[1].shape[1]

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, a, b, *extras = views
        require(y.rank == a.rank == 2 and b.rank == 3, f"ranks {y.rank}, {a.rank}, {b.rank}")
        require(a.shape == (y.shape[0], b.shape[1]), f"{y.shape} from {a.shape} and {b.shape}")
        require(b.shape[0] == -(-y.shape[1] // b.shape[2]), f"{b.shape[0]} panels of {b.shape[2]} for {y.shape[1]}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, a, b, *extras = arrays
        plain = np.transpose(b, (1, 0, 2)).reshape(b.shape[1], b.shape[0] * b.shape[2])[:, : y.shape[1]]
        product = np.matmul(wide(a), wide(plain)).astype(y.dtype)
        y[...] = apply_epilogue(self.epilogue, product, extras)
