"""Operators on the bits of integers, remainders, and reinterpretation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowstone import scalar
from glowstone.graph import Operand, Sample, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import INTEGERS, NUMBERS
from glowstone.ops.elementwise import UNARY, Binary, Elementwise, Unary, typed_samples
from glowstone.scalar import Expression, Literal, apply
from glowstone.types import ElementType

TWO_INTEGERS = (Operand("x", INTEGERS), Operand("y", INTEGERS))


@operator
class BitwiseAnd(Binary):
    """Bits set in both. ONNX BitwiseAnd-18."""

    onnx = "BitwiseAnd-18"
    operands = TWO_INTEGERS
    function = "and"
    commutative = True


@operator
class BitwiseOr(Binary):
    """Bits set in either. ONNX BitwiseOr-18."""

    onnx = "BitwiseOr-18"
    operands = TWO_INTEGERS
    function = "or"
    commutative = True


@operator
class BitwiseXor(Binary):
    """Bits set in exactly one. ONNX BitwiseXor-18."""

    onnx = "BitwiseXor-18"
    operands = TWO_INTEGERS
    function = "xor"
    commutative = True


@operator
class BitwiseNot(Unary):
    """All bits turned over. ONNX BitwiseNot-18."""

    onnx = "BitwiseNot-18"
    operands = (Operand("x", INTEGERS),)
    function = "not"


@operator
class BitShift(Binary):
    """Bits moved by y places. A count that is not the number of a bit leaves the sign or nothing. ONNX BitShift-11."""

    onnx = "BitShift-11"
    operands = TWO_INTEGERS
    left: bool = False

    def expression(self, *inputs: Expression) -> Expression:
        return apply("shift_left" if self.left else "shift_right", *inputs)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        cases = []
        for element in sorted(INTEGERS, key=str):
            x = np.array([[1, 100, 77], [3, 0, 127]]).astype(element.dtype)
            cases += [Sample(cls(left), (x, np.array([0, 1, 3], element.dtype))) for left in (False, True)]
        return cases

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.uint8)
        return [ErrorSample(cls(), (x, x[:, :2]), "broadcast")]


@operator
class Mod(Binary):
    """What division leaves: the sign of y, or that of x where `truncate`. ONNX Mod-13.

    An integer by 0 leaves 0.
    """

    onnx = "Mod-13"
    operands = (Operand("x", NUMBERS), Operand("y", NUMBERS))
    truncate: bool = False

    def expression(self, *inputs: Expression) -> Expression:
        x, y = inputs
        rest = apply("rem", x, y)
        if self.truncate or not x.element.is_signed:
            return rest
        zero = Literal(x.element, 0)
        is_nothing = apply("equal", rest, zero)
        differs = apply("xor", apply("less", rest, zero), apply("less", y, zero))
        moved = apply("select", differs, apply("add", rest, y), rest)
        nothing: Expression = zero
        if x.element.is_float:
            nothing = apply("select", apply("less", y, zero), Literal(x.element, -0.0), zero)
        return apply("select", is_nothing, nothing, moved)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.array([[-7.5, 7.5, -2.0], [2.0, 1e6, -0.1]], np.float32)
        y = np.array([2.5, -2.0, 0.7], np.float32)
        numbers, others = np.array([-7, 7, -8, 8, 5, 0]), np.array([3, -3, -2, 2, 7, 4])
        signed = [Sample(cls(flag), (numbers, others)) for flag in (False, True)]
        return [Sample(cls(True), (x, y)), *signed, *typed_samples(cls(True), NUMBERS, low=0.5)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.int64)
        return [ErrorSample(cls(), (x, x[:, :2]), "broadcast")]


@operator
class BitCast(Elementwise):
    """The same bits as another element type of the same size. ONNX BitCast-26."""

    onnx = "BitCast-26"
    operands = UNARY
    to: ElementType = ElementType.I32

    def expression(self, *inputs: Expression) -> Expression:
        return scalar.reinterpret(inputs[0], self.to)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        pairs = [
            (ElementType.I32, np.float32), (ElementType.F32, np.int32), (ElementType.U64, np.float64),
            (ElementType.F16, np.int16), (ElementType.U8, np.int8), (ElementType.I64, np.uint64),
            (ElementType.BF16, np.uint16), (ElementType.U8, np.bool_),
        ]  # fmt: skip
        return [Sample(cls(to), (np.array([[0, 1, 2], [3, 100, 9]]).astype(dtype),)) for to, dtype in pairs]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.ones(2),), "element types do not go together")]
