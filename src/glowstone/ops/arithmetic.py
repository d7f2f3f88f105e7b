"""Arithmetic, extrema, powers, rounding, and the functions of one number that networks use most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone import scalar
from glowstone.graph import Operand, Sample, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS, NUMBERS, SIGNED
from glowstone.ops.elementwise_base import FLOAT, TWO_NUMBERS, Binary, Elementwise, Unary
from glowstone.ops.elementwise_samples import binary_samples
from glowstone.scalar import Expression, Literal, apply
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Add(Binary):
    """x + y. ONNX Add-14."""

    onnx = "Add-14"
    operands = TWO_NUMBERS
    function = "add"
    commutative = True


@operator
class Sub(Binary):
    """x - y. ONNX Sub-14."""

    onnx = "Sub-14"
    operands = TWO_NUMBERS
    function = "sub"


@operator
class Mul(Binary):
    """x * y. ONNX Mul-14."""

    onnx = "Mul-14"
    operands = TWO_NUMBERS
    function = "mul"
    commutative = True


@operator
class Div(Binary):
    """x / y; integers truncate toward zero. ONNX Div-14."""

    onnx = "Div-14"
    operands = TWO_NUMBERS
    function = "div"
    domain = (0.5, 3.0)  # integers are not divided by zero

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.array([-7.5, 7.5, -2.0, 0.0], np.float32)
        signed = [Sample(cls(), (x.astype(dtype), np.array([[2], [-3]], dtype))) for dtype in (np.float32, np.int32)]
        return [*super().samples(), *signed]


@operator
class Pow(Elementwise):
    """x to the power y, in x's element type. ONNX Pow-15."""

    onnx = "Pow-15"
    operands = (Operand("x", NUMBERS), Operand("y", NUMBERS))

    def expression(self, *inputs: Expression) -> Expression:
        x, y = inputs
        wide = _power_element(x.element, y.element)
        return scalar.cast(apply("pow", scalar.cast(x, wide), scalar.cast(y, wide)), x.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        base = np.linspace(0.1, 3, 12, dtype=np.float32).reshape(3, 4)
        return [
            *binary_samples(cls(), 0.1, 3.0),
            Sample(cls(), (base, np.array(2, np.float32))),
            Sample(cls(), (base, np.array([2, 0, -1, 3], np.int64))),
            *(Sample(cls(), pair, 2.0**-7) for pair in _power_pairs()),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [ErrorSample(cls(), (x, x[:, :2]), "broadcast")]


def _power_pairs() -> list[tuple[Array, Array]]:
    """A base of every element type that may be one, to an exponent of every other."""
    base, exponent = np.array([1, 2, 3, 5]), np.array([3, 2, 0, 1])
    bases = (*sorted(FLOATS, key=str), ElementType.I32, ElementType.I64)
    exponents = sorted(NUMBERS, key=str)
    return [(base.astype(x.dtype), exponent.astype(y.dtype)) for x in bases for y in exponents]


def _power_element(x: ElementType, y: ElementType) -> ElementType:
    """What x^y is computed in: of two floats the larger; of two integers 64 bits, for the result wraps."""
    if x is y or (x.is_float and not y.is_float and x.size >= ElementType.F32.size):
        return x
    if not x.is_float:
        wide = ElementType.I64 if y.is_signed else ElementType.U64
        return ElementType.F64 if y.is_float else wide
    if y.is_float and y.size > x.size:
        return y
    return x if y.is_float and y.size < x.size else ElementType.F32


@operator
class Maximum(Binary):
    """The larger of x and y; NaN if either is. ONNX Max-13 of two operands."""

    onnx = "Max-13"
    operands = TWO_NUMBERS
    function = "max"
    commutative = True


@operator
class Minimum(Binary):
    """The smaller of x and y; NaN if either is. ONNX Min-13 of two operands."""

    onnx = "Min-13"
    operands = TWO_NUMBERS
    function = "min"
    commutative = True


@operator
class Neg(Unary):
    """-x. ONNX Neg-13."""

    onnx = "Neg-13"
    operands = (Operand("x", SIGNED),)
    function = "neg"


@operator
class Abs(Unary):
    """Magnitude. ONNX Abs-13."""

    onnx = "Abs-13"
    operands = (Operand("x", NUMBERS),)
    function = "abs"


@operator
class Sqrt(Unary):
    """Square root; NaN below zero. ONNX Sqrt-13."""

    onnx = "Sqrt-13"
    operands = FLOAT
    function = "sqrt"


@operator
class Exp(Unary):
    """e to the power x. ONNX Exp-13."""

    onnx = "Exp-13"
    operands = FLOAT
    function = "exp"


@operator
class Log(Unary):
    """Natural logarithm; NaN below zero. ONNX Log-13."""

    onnx = "Log-13"
    operands = FLOAT
    function = "log"


@operator
class Tanh(Unary):
    """Hyperbolic tangent. ONNX Tanh-13."""

    onnx = "Tanh-13"
    operands = FLOAT
    function = "tanh"


@operator
class Erf(Unary):
    """Error function. ONNX Erf-13."""

    onnx = "Erf-13"
    operands = FLOAT
    function = "erf"


@operator
class Floor(Unary):
    """Largest integer not above x. ONNX Floor-13."""

    onnx = "Floor-13"
    operands = FLOAT
    function = "floor"


@operator
class Ceil(Unary):
    """Smallest integer not below x. ONNX Ceil-13."""

    onnx = "Ceil-13"
    operands = FLOAT
    function = "ceil"


@operator
class Round(Unary):
    """Nearest integer, halves to even. ONNX Round-11."""

    onnx = "Round-11"
    operands = FLOAT
    function = "round"


@operator
class Reciprocal(Unary):
    """1 / x. ONNX Reciprocal-13."""

    onnx = "Reciprocal-13"
    operands = FLOAT

    def expression(self, *inputs: Expression) -> Expression:
        return apply("div", Literal(inputs[0].element, 1.0), inputs[0])
