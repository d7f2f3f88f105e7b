"""Hyperbolic sine and cosine, and the inverses of all three hyperbolic functions, of float64."""

from __future__ import annotations

import math as numbers

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.exponential import emit_exp, emit_expm1_not_positive
from glowstone.backends.cpu.math.logarithm import emit_log, emit_log1p
from glowstone.backends.cpu.math.vector_builder import VectorBuilder

ONE_EXPONENTIAL = 22.0
"""From here on e^-x is nothing beside e^x."""
ONE_IS_NOTHING = 2.0**28
"""From here on x^2 + 1 is x^2."""
LN2 = 0.6931471805599453


def emit_sinh(math: VectorBuilder, x: Value) -> Value:
    """Hyperbolic sine: (e^x - e^-x) / 2; up to 1 from m = e^-x - 1, without cancellation."""
    magnitude = math.unary("fabs", x)
    one, half = math.constant(1.0), math.constant(0.5)
    below = emit_expm1_not_positive(math, math.ir.fneg(math.at_most(magnitude, 1.0)))
    total = math.ir.fadd(below, math.ir.fdiv(below, math.ir.fadd(below, one)))
    small = math.ir.fmul(math.ir.fneg(total), half)
    power = emit_exp(math, magnitude)
    middle = math.ir.fmul(math.ir.fsub(power, math.ir.fdiv(one, power)), half)
    result = math.select(math.less(magnitude, one), small, middle)
    result = math.select(math.less(magnitude, math.constant(ONE_EXPONENTIAL)), result, _half_power(math, magnitude))
    return math.copy_sign(result, x)


def emit_cosh(math: VectorBuilder, x: Value) -> Value:
    """Hyperbolic cosine: (e^x + e^-x) / 2."""
    magnitude = math.unary("fabs", x)
    power = emit_exp(math, magnitude)
    both = math.ir.fadd(power, math.ir.fdiv(math.constant(1.0), power))
    result = math.ir.fmul(both, math.constant(0.5))
    is_small = math.less(magnitude, math.constant(ONE_EXPONENTIAL))
    return math.select(is_small, result, _half_power(math, magnitude))


def _half_power(math: VectorBuilder, x: Value) -> Value:
    """e^x / 2, also where e^x overflows."""
    root = emit_exp(math, math.ir.fmul(x, math.constant(0.5)))
    return math.ir.fmul(math.ir.fmul(root, math.constant(0.5)), root)


def emit_asinh(math: VectorBuilder, x: Value) -> Value:
    """Inverse hyperbolic sine: log1p(x + x^2 / (1 + sqrt(x^2 + 1)))."""
    magnitude, one = math.unary("fabs", x), math.constant(1.0)
    square = math.ir.fmul(magnitude, magnitude)
    root = math.unary("sqrt", math.ir.fadd(square, one))
    argument = math.ir.fadd(magnitude, math.ir.fdiv(square, math.ir.fadd(root, one)))
    return math.copy_sign(_logarithm(math, magnitude, argument), x)


def emit_acosh(math: VectorBuilder, x: Value) -> Value:
    """Inverse hyperbolic cosine: log1p(t + sqrt(2 t + t^2)) with t = x - 1; NaN below 1."""
    above_one = math.ir.fsub(x, math.constant(1.0))
    root = math.unary("sqrt", math.fma(above_one, above_one, math.ir.fadd(above_one, above_one)))
    result = _logarithm(math, x, math.ir.fadd(above_one, root))
    return math.select(math.less(x, math.constant(1.0)), math.constant(numbers.nan), result)


def _logarithm(math: VectorBuilder, x: Value, argument: Value) -> Value:
    """log1p(argument), which is log(2 x) for large x."""
    large = math.ir.fadd(emit_log(math, x), math.constant(LN2))
    return math.select(math.less(x, math.constant(ONE_IS_NOTHING)), emit_log1p(math, argument), large)


def emit_atanh(math: VectorBuilder, x: Value) -> Value:
    """Inverse hyperbolic tangent: log1p(2 x / (1 - x)) / 2; NaN outside [-1, 1]."""
    magnitude = math.unary("fabs", x)
    below_one = math.ir.fsub(math.constant(1.0), magnitude)
    argument = math.ir.fdiv(math.ir.fadd(magnitude, magnitude), below_one)
    return math.copy_sign(math.ir.fmul(emit_log1p(math, argument), math.constant(0.5)), x)
