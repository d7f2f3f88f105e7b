"""Comparisons, logic, and the choice that depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.graph import Operand, Sample, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import ANY, BOOLS
from glowstone.ops.elementwise_base import TWO_BOOLS, TWO_NUMBERS, TWO_OF_ANY, Binary, Elementwise, Unary
from glowstone.scalar import Expression, apply
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Equal(Binary):
    """x == y. ONNX Equal-13."""

    onnx = "Equal-13"
    operands = TWO_OF_ANY
    function = "equal"
    commutative = True


@operator
class Less(Binary):
    """x < y. ONNX Less-13."""

    onnx = "Less-13"
    operands = TWO_NUMBERS
    function = "less"


@operator
class LessOrEqual(Binary):
    """x <= y. ONNX LessOrEqual-16."""

    onnx = "LessOrEqual-16"
    operands = TWO_NUMBERS
    function = "less_equal"


@operator
class Greater(Binary):
    """x > y. ONNX Greater-13."""

    onnx = "Greater-13"
    operands = TWO_NUMBERS

    def expression(self, *inputs: Expression) -> Expression:
        return apply("less", inputs[1], inputs[0])


@operator
class GreaterOrEqual(Binary):
    """x >= y. ONNX GreaterOrEqual-16."""

    onnx = "GreaterOrEqual-16"
    operands = TWO_NUMBERS

    def expression(self, *inputs: Expression) -> Expression:
        return apply("less_equal", inputs[1], inputs[0])


@operator
class And(Binary):
    """Both. ONNX And-7."""

    onnx = "And-7"
    operands = TWO_BOOLS
    function = "and"
    commutative = True


@operator
class Or(Binary):
    """Either. ONNX Or-7."""

    onnx = "Or-7"
    operands = TWO_BOOLS
    function = "or"
    commutative = True


@operator
class Xor(Binary):
    """Exactly one. ONNX Xor-7."""

    onnx = "Xor-7"
    operands = TWO_BOOLS
    function = "xor"
    commutative = True


@operator
class Not(Unary):
    """Negation. ONNX Not-1."""

    onnx = "Not-1"
    operands = (Operand("x", BOOLS),)
    function = "not"


@operator
class Where(Elementwise):
    """x where the condition holds, else y. ONNX Where-16."""

    onnx = "Where-16"
    operands = (Operand("condition", BOOLS), Operand("x", ANY), Operand("y", ANY))

    def expression(self, *inputs: Expression) -> Expression:
        return apply("select", *inputs)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        mask = np.array([[True], [False], [True]])
        return [
            Sample(cls(), (mask, np.arange(4, dtype=np.float32), np.array(-1, np.float32))),
            *(Sample(cls(), (mask, *_pair_of(element))) for element in sorted(ANY, key=str)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        mask, x = np.ones(3, np.bool_), np.ones(3, np.float32)
        return [
            ErrorSample(cls(), (mask, x, x[:2]), "broadcast"),
            ErrorSample(cls(), (mask, x, np.arange(3)), "element types do not go together"),
        ]


def _pair_of(element: ElementType) -> tuple[Array, Array]:
    return np.arange(4).astype(element.dtype), np.arange(3).reshape(3, 1).astype(element.dtype)
