"""x to the power y for floats, with the special cases of C99."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.double_word import multiply_float
from glowstone.backends.cpu.math.exponential import emit_exp
from glowstone.backends.cpu.math.logarithm import emit_log, emit_log_words
from glowstone.backends.cpu.math.vector_builder import VectorBuilder
from glowstone.types import ElementType

HUGE_EXPONENT = 1000.0
"""Beyond e^1000 and e^-1000 a result is infinity or zero, whatever the low word says."""


def emit_constant_power(math: VectorBuilder, x: Value, exponent: float) -> Value | None:
    """x^exponent in a few operations, or None where only the general form is accurate."""
    if exponent == 0:
        return math.constant(1.0)
    if abs(exponent) == 0.5:
        # pow(-infinity, 0.5) is +infinity and pow(-0.0, 0.5) is +0.0: not what a square root gives
        root = math.unary("sqrt", math.ir.fadd(x, math.constant(0.0)))
        lowest = math.equal(x, math.constant(-numbers.inf))
        root = math.select(lowest, math.constant(numbers.inf), root)
        return root if exponent > 0 else math.ir.fdiv(math.constant(1.0), root)
    if exponent == -1:
        return math.ir.fdiv(math.constant(1.0), x)
    if exponent in (1, 2, 3):
        result = x
        for _ in range(int(exponent) - 1):
            result = math.ir.fmul(result, x)
        return result
    return None


def emit_pow(math: VectorBuilder, x: Value, y: Value) -> Value:
    """x^y for any x and y."""
    wide = math.with_element(ElementType.F64)
    if math.element is ElementType.F64:
        return _pow_f64(wide, x, y, _power_in_words)
    result = _pow_f64(wide, wide.ir.fpext(x, wide.type), wide.ir.fpext(y, wide.type), _power_in_one_word)
    return wide.ir.fptrunc(result, math.type)


def _power_in_one_word(wide: VectorBuilder, magnitude: Value, y: Value) -> Value:
    """magnitude^y to about 45 bits, which is ample for a float32 result."""
    return emit_exp(wide, wide.ir.fmul(y, emit_log(wide, magnitude)))


def _power_in_words(wide: VectorBuilder, magnitude: Value, y: Value) -> Value:
    """magnitude^y to nearly all 53 bits: the product y log(magnitude), up to 710, needs ten bits more than a result."""
    logarithm = emit_log(wide, magnitude)
    rough = wide.ir.fmul(y, logarithm)
    fine = multiply_float(wide, emit_log_words(wide, magnitude), y)
    is_ordinary = wide.less(wide.unary("fabs", rough), wide.constant(HUGE_EXPONENT))
    zero = wide.constant(0.0)
    power = emit_exp(wide, wide.select(is_ordinary, fine.high, rough))
    corrected = wide.fma(power, wide.select(is_ordinary, fine.low, zero), power)
    return wide.select(wide.equal(power, wide.constant(numbers.inf)), power, corrected)


def _pow_f64(wide: VectorBuilder, x: Value, y: Value, power: Callable[[VectorBuilder, Value, Value], Value]) -> Value:
    """The special cases around the power of a magnitude."""
    one, zero = wide.constant(1.0), wide.constant(0.0)
    magnitude = wide.unary("fabs", x)
    result = power(wide, magnitude, y)
    result = wide.select(wide.ir.and_(wide.equal(magnitude, one), wide.equal(y, y)), one, result)
    is_integer, is_odd = _parity(wide, y)
    is_negative = wide.ir.icmp_signed("<", wide.to_bits(x), wide.integer(0))
    result = wide.select(wide.ir.and_(is_negative, is_odd), wide.ir.fneg(result), result)
    has_no_root = wide.ir.and_(wide.less(x, zero), wide.less(wide.constant(-numbers.inf), x))
    has_no_root = wide.ir.and_(has_no_root, wide.ir.not_(is_integer))
    result = wide.select(has_no_root, wide.constant(numbers.nan), result)
    is_one = wide.ir.or_(wide.equal(x, one), wide.equal(y, zero))
    return wide.select(is_one, one, result)


def _parity(wide: VectorBuilder, y: Value) -> tuple[Value, Value]:
    """(y is an integer, y is an odd integer); infinities are even."""
    is_integer = wide.equal(wide.unary("floor", y), y)
    half = wide.ir.fmul(y, wide.constant(0.5))
    is_even = wide.equal(wide.unary("floor", half), half)
    return is_integer, wide.ir.and_(is_integer, wide.ir.not_(is_even))
