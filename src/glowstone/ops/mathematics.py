"""Mathematical functions of one number, and questions about it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glowstone.graph import Operand, Sample, operator
from glowstone.ops.element_sets import FLOATS, FLOATS_OF_8_BITS, NUMBERS
from glowstone.ops.elementwise import FLOAT, Unary
from glowstone.scalar import Expression, Literal, apply, cast

TESTED = FLOATS | FLOATS_OF_8_BITS
"""What may be asked whether it is NaN or infinite."""


@operator
class Sin(Unary):
    """Sine. ONNX Sin-22."""

    onnx = "Sin-22"
    operands = FLOAT
    function = "sin"


@operator
class Cos(Unary):
    """Cosine. ONNX Cos-22."""

    onnx = "Cos-22"
    operands = FLOAT
    function = "cos"


@operator
class Tan(Unary):
    """Tangent. ONNX Tan-22."""

    onnx = "Tan-22"
    operands = FLOAT
    function = "tan"


@operator
class Asin(Unary):
    """Arcsine; NaN outside [-1, 1]. ONNX Asin-22."""

    onnx = "Asin-22"
    operands = FLOAT
    function = "asin"
    domain = (-1.0, 1.0)


@operator
class Acos(Unary):
    """Arccosine; NaN outside [-1, 1]. ONNX Acos-22."""

    onnx = "Acos-22"
    operands = FLOAT
    function = "acos"
    domain = (-1.0, 1.0)


@operator
class Atan(Unary):
    """Arctangent. ONNX Atan-22."""

    onnx = "Atan-22"
    operands = FLOAT
    function = "atan"


@operator
class Sinh(Unary):
    """Hyperbolic sine. ONNX Sinh-22."""

    onnx = "Sinh-22"
    operands = FLOAT
    function = "sinh"


@operator
class Cosh(Unary):
    """Hyperbolic cosine. ONNX Cosh-22."""

    onnx = "Cosh-22"
    operands = FLOAT
    function = "cosh"


@operator
class Asinh(Unary):
    """Inverse hyperbolic sine. ONNX Asinh-22."""

    onnx = "Asinh-22"
    operands = FLOAT
    function = "asinh"


@operator
class Acosh(Unary):
    """Inverse hyperbolic cosine; NaN below 1. ONNX Acosh-22."""

    onnx = "Acosh-22"
    operands = FLOAT
    function = "acosh"
    domain = (1.0, 9.0)


@operator
class Atanh(Unary):
    """Inverse hyperbolic tangent; NaN outside [-1, 1]. ONNX Atanh-22."""

    onnx = "Atanh-22"
    operands = FLOAT
    function = "atanh"
    domain = (-0.99, 0.99)


@operator
class Sign(Unary):
    """-1, 0 or 1; NaN of NaN. ONNX Sign-13."""

    onnx = "Sign-13"
    operands = (Operand("x", NUMBERS),)

    def expression(self, *inputs: Expression) -> Expression:
        (x,) = inputs
        zero = Literal(x.element, 0)
        nothing = apply("select", apply("equal", x, zero), zero, x) if x.element.is_float else zero
        above = apply("select", apply("less", zero, x), Literal(x.element, 1), nothing)
        if not x.element.is_signed:
            return above
        return apply("select", apply("less", x, zero), Literal(x.element, -1), above)


@operator
class IsNaN(Unary):
    """Whether x is no number. ONNX IsNaN-20."""

    onnx = "IsNaN-20"
    operands = (Operand("x", TESTED),)

    def expression(self, *inputs: Expression) -> Expression:
        x = cast(inputs[0], inputs[0].element.wide)
        return apply("not", apply("equal", x, x))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(), (_with_specials(element.dtype),)) for element in sorted(TESTED, key=str)]


@operator
class IsInf(Unary):
    """Whether x is one of the infinities asked for. ONNX IsInf-20."""

    onnx = "IsInf-20"
    operands = (Operand("x", TESTED),)
    negative: bool = True
    positive: bool = True

    def expression(self, *inputs: Expression) -> Expression:
        x = cast(inputs[0], inputs[0].element.wide)
        infinity = Literal(x.element, math.inf)
        if self.negative and self.positive:
            return apply("equal", apply("abs", x), infinity)
        if not self.negative and not self.positive:
            return apply("less", x, x)  # never
        return apply("equal", x, infinity if self.positive else Literal(x.element, -math.inf))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = _with_specials(np.dtype(np.float32))
        flags = [(False, True), (True, False), (False, False)]
        return [
            *(Sample(cls(), (_with_specials(element.dtype),)) for element in sorted(TESTED, key=str)),
            *(Sample(cls(*pair), (x,)) for pair in flags),
        ]


def _with_specials(dtype: np.dtype[np.generic]) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return np.array([0.0, -1.5, math.nan, math.inf, -math.inf, 6.0, -math.nan], dtype)
