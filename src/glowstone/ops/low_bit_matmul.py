"""Matrix products with weights of few bits, which stay packed in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.scalar.packed_bits import unpacked
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

BITS = (2, 4, 8)
SHORTEST_BLOCK = 16
F32 = frozenset({ElementType.F32})


def blocks_of(count: int, block: int) -> int:
    """How many blocks so many weights of one column take."""
    return -(-count // block)


@operator
class LowBitMatMul(Operator):
    """The product of a and a matrix of weights (q - zero point) * scale, where q has 2, 4 or 8 bits.

    a [M, K]; weights u8 [N, blocks, block * bits / 8]: for each column of the matrix its K weights in blocks of
    `block`, packed into bytes from the lowest bits on; scales and zero points [N, blocks]. What the last block has
    behind K counts for nothing.

    One operator, so that folding never writes the weights out as floats, which would take up to 16 times their memory.
    """

    operands = (
        Operand("a", F32),
        Operand("weights", frozenset({ElementType.U8})),
        Operand("scales", F32),
        Operand("zero_points", F32),
    )
    bits: int = 4
    block: int = 32

    def check_form(self) -> None:
        """Raise ModelError unless bits and block are among those that there are."""
        if self.bits not in BITS:
            raise ModelError("weights have an unknown number of bits", expected="2, 4 or 8", found=self.bits)
        if self.block < SHORTEST_BLOCK or self.block & (self.block - 1):
            raise ModelError("blocks of weights have an unknown length", expected="16, 32, 64 ...", found=self.block)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        a, weights, scales, zero_points = operands
        self.check_form()
        if a.rank != 2 or weights.rank != 3:
            raise ShapeError("ranks do not fit the product", expected="rank 2 and 3", found=f"{a.type}, {weights.type}")
        blocks = blocks_of(a.shape[1], self.block)
        expected = (weights.shape[0], blocks, self.block * self.bits // 8)
        if weights.shape != expected:
            raise ShapeError("packed weights do not fit", expected=list(expected), found=list(weights.shape))
        for parameter in (scales, zero_points):
            if parameter.shape != expected[:2]:
                raise ShapeError(
                    "scales or zero points do not fit", expected=list(expected[:2]), found=list(parameter.shape)
                )
        return (a.type.with_shape((a.shape[0], weights.shape[0])),)

    def reference(self, a: Array, weights: Array, scales: Array, zero_points: Array) -> Array:
        meant = unpacked(weights, scales, zero_points, self.bits)[:, : a.shape[1]]
        return np.asarray(a.astype(np.float64) @ meant.astype(np.float64).T).astype(np.float32)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(81)

        def case(rows: int, depth: int, columns: int, bits: int, block: int) -> tuple[Array, ...]:
            blocks = blocks_of(depth, block)
            return (
                random.standard_normal((rows, depth)).astype(np.float32),
                random.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8),
                random.uniform(0.1, 0.2, (columns, blocks)).astype(np.float32),
                random.uniform(0, 2**bits, (columns, blocks)).astype(np.float32),
            )

        sizes = [(1, 64, 5), (7, 37, 6), (4, 16, 1), (0, 40, 3), (2, 40, 0)]
        forms = [(4, 32), (4, 16), (2, 16), (8, 32), (4, 64)]
        samples = [Sample(cls(*form), case(*size, *form)) for size, form in zip(sizes, forms, strict=True)]
        return [*samples, Sample(cls(2, 64), case(5, 300, 9, 2, 64)), Sample(cls(8, 16), case(3, 50, 4, 8, 16))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        a, weights, scales = np.ones((2, 40), np.float32), np.ones((3, 2, 16), np.uint8), np.ones((3, 2), np.float32)
        return [
            ErrorSample(cls(3), (a, weights, scales, scales), "unknown number of bits"),
            ErrorSample(cls(4, 24), (a, weights, scales, scales), "unknown length"),
            ErrorSample(cls(), (a[:, :9], weights, scales, scales), "packed weights do not fit"),
            ErrorSample(cls(), (a[0], weights, scales, scales), "ranks do not fit"),
            ErrorSample(cls(), (a, weights, scales[:2], scales), "scales or zero points do not fit"),
        ]
