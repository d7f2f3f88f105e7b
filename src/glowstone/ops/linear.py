"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample, sum_bound
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import FLOATS, HALVES, INTEGERS
from glowstone.ops.elementwise import Add, Mul
from glowstone.ops.operand_checks import require_one_element
from glowstone.ops.shape import Transpose
from glowstone.ops.widening import in_float32
from glowstone.types import TensorType, broadcast_shapes, is_float_dtype

Array = np.ndarray[Any, np.dtype[Any]]

FACTORS = FLOATS | INTEGERS


@operator
class MatMul(Operator):
    """Matrix product over the last two axes, the others broadcast; vectors as NumPy does. ONNX MatMul-13."""

    onnx = "MatMul-13"
    operands = (Operand("a", FACTORS), Operand("b", FACTORS))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        a, b = operands
        if a.element is not b.element:
            raise ShapeError("factors have different element types", expected=a.element, found=b.element)
        if not a.rank or not b.rank:
            raise ShapeError("a factor is a scalar", expected="rank 1 or more", found=f"{a.type}, {b.type}")
        left = a.shape if a.rank > 1 else (1, *a.shape)
        right = b.shape if b.rank > 1 else (*b.shape, 1)
        if left[-1] != right[-2]:
            raise ShapeError("inner extents differ", expected=f"{left[-1]} rows in b", found=f"{a.type}, {b.type}")
        rows = left[-2:-1] if a.rank > 1 else ()
        columns = right[-1:] if b.rank > 1 else ()
        shape = (*broadcast_shapes(left[:-2], right[:-2]), *rows, *columns)
        return (a.type.with_shape(shape),)

    def reference(self, a: Array, b: Array) -> Array:
        if is_float_dtype(a.dtype):
            return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype))
        return np.asarray(np.matmul(a, b))

    def ulp_bound(self, *operands: Value | None) -> float:
        """Sums over the inner extent."""
        a = operands[0]
        return sum_bound(a.shape[-1] if a is not None and a.rank else 1)

    def decompose(self, builder: Builder, a: Value, b: Value) -> Value | None:
        """Floats of 16 bits have no fast kernels: their products are summed as float32 anyway."""
        return in_float32(builder, self, a, b)[0] if a.element in HALVES else None

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(2)
        shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
            ((2, 3), (3, 4)),
            ((7, 33), (33, 17)),
            ((2, 1, 5, 3), (4, 3, 6)),
            ((3,), (3,)),
            ((3,), (2, 3, 4)),
            ((2, 5, 3), (3,)),
            ((0, 3), (3, 2)),
            ((2, 0), (0, 3)),
            ((1, 64), (64, 40)),
        ]
        return [
            Sample(cls(), tuple(random.standard_normal(shape).astype(np.float32) for shape in pair)) for pair in shapes
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        one = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls(), (one, one), "inner extents differ"),
            ErrorSample(cls(), (one, np.array(1, np.float32)), "a factor is a scalar"),
        ]


@operator
class Gemm(Operator):
    """alpha * op(a) op(b) + beta * c, c broadcast, op a transposition where asked. ONNX Gemm-13.

    The factors of integers lose their fractions.
    """

    onnx = "Gemm-13"
    operands = (Operand("a", FACTORS), Operand("b", FACTORS), Operand("c", FACTORS, optional=True))
    alpha: float = 1.0
    beta: float = 1.0
    transpose_a: bool = False
    transpose_b: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        a, b = operands[:2]
        require_one_element(*operands)
        if a.rank != 2 or b.rank != 2:
            raise ShapeError("a factor is no matrix", expected="rank 2", found=f"{a.type}, {b.type}")
        rows, inner = reversed(a.shape) if self.transpose_a else a.shape
        inner_b, columns = reversed(b.shape) if self.transpose_b else b.shape
        if inner != inner_b:
            raise ShapeError("inner extents differ", expected=inner, found=inner_b)
        if len(operands) > 2 and broadcast_shapes((rows, columns), operands[2].shape) != (rows, columns):
            raise ShapeError(
                "c does not broadcast to the product", expected=[rows, columns], found=list(operands[2].shape)
            )
        return (a.type.with_shape((rows, columns)),)

    def reference(self, a: Array, b: Array, c: Array | None = None) -> Array:
        left = a.T if self.transpose_a else a
        right = b.T if self.transpose_b else b
        wide: Any = a.dtype if a.dtype.kind in "iu" else np.float64
        product = np.asarray(self.alpha, wide) * np.matmul(left.astype(wide), right.astype(wide))
        return np.asarray(product if c is None else product + np.asarray(self.beta, wide) * c).astype(a.dtype)

    def ulp_bound(self, *operands: Value | None) -> float:
        """Sums over the inner extent."""
        a = operands[0]
        return sum_bound(a.shape[0 if self.transpose_a else 1] if a is not None else 1)

    def decompose(self, builder: Builder, a: Value, b: Value, c: Value | None = None) -> Value:
        if a.element in HALVES:
            return in_float32(builder, self, a, b, c)[0]
        left = builder.emit(Transpose((1, 0)), a) if self.transpose_a else a
        right = builder.emit(Transpose((1, 0)), b) if self.transpose_b else b
        product = builder.emit(MatMul(), left, right)
        if self.alpha != 1.0:
            product = builder.emit(Mul(), product, scalar(builder, self.alpha, a.element))
        if c is None or self.beta == 0.0:
            return product
        if self.beta != 1.0:
            c = builder.emit(Mul(), c, scalar(builder, self.beta, a.element))
        return builder.emit(Add(), product, c)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(3)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls(), (normal(3, 4), normal(4, 5))),
            Sample(cls(2.0, 0.5), (normal(3, 4), normal(4, 5), normal(5))),
            Sample(cls(1.0, 1.0, True, True), (normal(4, 3), normal(5, 4), normal(3, 1))),
            Sample(cls(1.0, 0.0, False, True), (normal(1, 4), normal(5, 4), normal(1))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        one = np.ones((2, 3), np.float32)
        return [ErrorSample(cls(), (one, one), "inner extents differ")]
