"""Matrix products with packed weights of few bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.scalar.packed_bits import unpacked
from glowstone.types import ElementType

Y, A, WEIGHTS, SCALES, ZERO_POINTS = range(5)


@operation
class LowBitMatMul(Operation):
    """`y[m, n] = sum over k of a[m, k] * (q[n, k] - zero_points[n, b]) * scales[n, b]`, b the block of k.

    Operands: y [M, N], a [M, K], weights u8 [N, B, block * bits / 8], scales and zero_points [N, B] of any strides;
    q[n] are the numbers of `bits` in the bytes of weights[n], the lowest bits first. All floats are float32.
    """

    bits: int
    block: int
    ulp_bound: ClassVar[float] = 64.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN, Access.IN, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return operand in (SCALES, ZERO_POINTS) or view.is_contiguous

    def multiply_adds(self, views: Sequence[View]) -> int:
        return views[Y].size * views[A].shape[1]

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, a, weights, scales, zero_points = views
        require(y.rank == a.rank == scales.rank == zero_points.rank == 2 and weights.rank == 3, "ranks")
        columns, blocks, size = weights.shape
        require(y.shape == (a.shape[0], columns), f"{y.shape} from {a.shape} and {weights.shape}")
        require(size * 8 == self.block * self.bits, f"{size} bytes for {self.block} numbers of {self.bits} bits")
        require(blocks == -(-a.shape[1] // self.block), f"{blocks} blocks for {a.shape[1]} numbers")
        require(scales.shape == zero_points.shape == (columns, blocks), f"{scales.shape}, {zero_points.shape}")
        floats = {view.element for view in (y, a, scales, zero_points)}
        require(floats == {ElementType.F32} and weights.element is ElementType.U8, f"{floats}, {weights.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, a, weights, scales, zero_points = arrays
        meant = unpacked(weights, scales, zero_points, self.bits)[:, : a.shape[1]]
        y[...] = a.astype(np.float64) @ meant.astype(np.float64).T
