"""Arcsine, arccosine and arctangent of float64, all from the arctangent on [-tan(pi/8), tan(pi/8)]."""

from __future__ import annotations

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.vector_builder import VectorBuilder

HALF_PI_WORDS = (1.5707963267948966, 6.123233995736766e-17)
QUARTER_PI_WORDS = (0.7853981633974483, 3.061616997868383e-17)
TAN_OF_EIGHTH = 0.41421356237309503
"""tan(pi / 8): up to here the polynomial holds."""
# (atan t - t) / t^3 in powers of t^2, interpolated at Chebyshev nodes of [0, TAN_OF_EIGHTH^2]
ARCTANGENT = (
    -0.3333333333333333,
    0.19999999999999804,
    -0.14285714285659828,
    0.11111111105155447,
    -0.09090908753500877,
    0.07692296375032141,
    -0.06666424885738241,
    0.058789289978346364,
    -0.05230454270649343,
    0.045515932206228675,
    -0.03457056198134207,
    0.016285756855134323,
)


def emit_atan(math: VectorBuilder, x: Value) -> Value:
    """Arctangent: pi/2 + atan(-1 / x) for large x, pi/4 + atan((x - 1) / (x + 1)) in the middle."""
    one, zero = math.constant(1.0), math.constant(0.0)
    magnitude = math.unary("fabs", x)
    is_middle = math.ir.and_(
        math.less(math.constant(TAN_OF_EIGHTH), magnitude), math.less(magnitude, math.constant(1 / TAN_OF_EIGHTH))
    )
    is_large = math.less(one, magnitude)

    def choose(middle: Value, large: Value, small: Value) -> Value:
        return math.select(is_middle, middle, math.select(is_large, large, small))

    above = choose(math.ir.fsub(magnitude, one), math.constant(-1.0), magnitude)
    below = choose(math.ir.fadd(magnitude, one), magnitude, one)
    argument = math.ir.fdiv(above, below)
    high, low = (
        choose(math.constant(quarter), math.constant(half), zero)
        for quarter, half in zip(QUARTER_PI_WORDS, HALF_PI_WORDS, strict=True)
    )
    square = math.ir.fmul(argument, argument)
    tail = math.fma(math.ir.fmul(argument, square), math.polynomial(square, ARCTANGENT), low)
    return math.copy_sign(math.ir.fadd(high, math.ir.fadd(argument, tail)), x)


def emit_asin(math: VectorBuilder, x: Value) -> Value:
    """Arcsine: the arctangent of x / sqrt(1 - x^2); NaN outside [-1, 1]."""
    one = math.constant(1.0)
    square = math.ir.fmul(math.ir.fsub(one, x), math.ir.fadd(one, x))
    return emit_atan(math, math.ir.fdiv(x, math.unary("sqrt", square)))


def emit_acos(math: VectorBuilder, x: Value) -> Value:
    """Arccosine: twice the arctangent of sqrt((1 - x) / (1 + x)); NaN outside [-1, 1]."""
    one = math.constant(1.0)
    quotient = math.ir.fdiv(math.ir.fsub(one, x), math.ir.fadd(one, x))
    half = emit_atan(math, math.unary("sqrt", quotient))
    return math.ir.fadd(half, half)
