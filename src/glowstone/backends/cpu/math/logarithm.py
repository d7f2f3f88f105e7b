"""The natural logarithm, and one with a second word of precision for powers.

x = 2^e * m with m in [sqrt(1/2), sqrt(2)); polynomials interpolate at Chebyshev nodes.
"""

from __future__ import annotations

import math as numbers

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.double_word import (
    DoubleWord,
    add_float,
    add_words,
    exact_sum,
    multiply_float,
    multiply_words,
    quick_sum,
    quotient,
)
from glowstone.backends.cpu.math.vector_builder import VectorBuilder
from glowstone.types import ElementType

SQRT_HALF_BITS = {ElementType.F32: 0x3F3504F3, ElementType.F64: 0x3FE6A09E667F3BCD}
LN2_HIGH = {ElementType.F32: 0.693145751953125, ElementType.F64: 0.6931471803691238}
LN2_LOW = {ElementType.F32: 1.4286068203094172e-06, ElementType.F64: 1.9082149292705877e-10}
LN2_WORDS = (0.6931471803691238, 1.9082149292705877e-10)

# (log(1 + f) - f + f^2 / 2) / f^3 in powers of f
LOG_F32 = (
    0.33333331180030046,
    -0.24999996957950882,
    0.200007157488921,
    -0.16667802319501254,
    0.1424905764569748,
    -0.12425687331451106,
    0.1168541992348674,
    -0.11479733846637635,
    0.06971611471451176,
)
# (log((1 + s) / (1 - s)) - 2 s) / s^3 in powers of s^2
LOG_F64 = (
    0.6666666666666666,
    0.4000000000000088,
    0.28571428570803614,
    0.22222222391713917,
    0.181817956401329,
    0.15386239702814888,
    0.13268773138651677,
    0.13086626147887312,
)
# the same after its first term, 2/3, which `emit_log_words` carries in two words
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LOG_TAIL_F64 = (
    0.4,
    0.28571428571429364,
    0.22222222221656232,
    0.18181818335314404,
    0.15384594970895454,
    0.13334804238225553,
    0.11706248540917667,
    0.1172305102814051,
)


def emit_log(math: VectorBuilder, x: Value) -> Value:
    """Natural logarithm of x; -infinity at 0, NaN below."""
    exponent, mantissa = _split(math, x)
    f = math.ir.fsub(mantissa, math.constant(1.0))
    series = _log1p_f32 if math.element is ElementType.F32 else _log1p_f64
    result = series(math, f, exponent)
    result = math.select(math.less(x, math.constant(numbers.inf)), result, x)
    at_pole = math.select(math.equal(x, math.constant(0.0)), math.constant(-numbers.inf), math.constant(numbers.nan))
    return math.select(math.ir.fcmp_ordered("<=", x, math.constant(0.0)), at_pole, result)


def emit_log1p(math: VectorBuilder, x: Value) -> Value:
    """log(1 + x), from the exact sum: log(s + e) is log(s) + e / s."""
    total = exact_sum(math, math.constant(1.0), x)
    result = math.ir.fadd(emit_log(math, total.high), math.ir.fdiv(total.low, total.high))
    is_plain = math.ir.and_(math.less(math.constant(-1.0), x), math.less(x, math.constant(numbers.inf)))
    result = math.select(is_plain, result, emit_log(math, total.high))
    return math.select(math.equal(x, math.constant(0.0)), x, result)


def _split(math: VectorBuilder, x: Value) -> tuple[Value, Value]:
    """(e as a float, m) of a positive number; whatever of others."""
    mantissa_bits = math.format.mantissa_bits
    is_small = math.less(x, math.constant(math.format.smallest_normal))
    scaled = math.ir.fmul(x, math.constant(2.0**mantissa_bits))
    bits = math.to_bits(math.select(is_small, scaled, x))
    above = math.ir.sub(bits, math.integer(SQRT_HALF_BITS[math.element]))
    exponent = math.ir.ashr(above, math.integer(mantissa_bits))
    mantissa = math.from_bits(math.ir.sub(bits, math.ir.shl(exponent, math.integer(mantissa_bits))))
    correction = math.select(is_small, math.constant(float(mantissa_bits)), math.constant(0.0))
    return math.ir.fsub(math.small_integer_to_float(exponent), correction), mantissa


def _log1p_f32(math: VectorBuilder, f: Value, exponent: Value) -> Value:
    """`exponent * ln 2 + log(1 + f)`."""
    square = math.ir.fmul(f, f)
    tail = math.ir.fmul(math.ir.fmul(f, square), math.polynomial(f, LOG_F32))
    tail = math.fma(exponent, math.constant(LN2_LOW[math.element]), tail)
    tail = math.fma(square, math.constant(-0.5), tail)
    return math.fma(exponent, math.constant(LN2_HIGH[math.element]), math.ir.fadd(f, tail))


def _log1p_f64(math: VectorBuilder, f: Value, exponent: Value) -> Value:
    """`exponent * ln 2 + log(1 + f)`.

    With s = f / (2 + f), z = s^2 and h = f^2 / 2, log(1 + f) = f - (h - s (h + z P(z))).
    """
    s = math.ir.fdiv(f, math.ir.fadd(f, math.constant(2.0)))
    z = math.ir.fmul(s, s)
    rest = math.ir.fmul(z, math.polynomial(z, LOG_F64))
    half_square = math.ir.fmul(math.ir.fmul(f, math.constant(0.5)), f)
    low = math.fma(exponent, math.constant(LN2_LOW[math.element]), math.ir.fmul(s, math.ir.fadd(half_square, rest)))
    tail = math.ir.fsub(math.ir.fsub(half_square, low), f)
    return math.ir.fsub(math.ir.fmul(exponent, math.constant(LN2_HIGH[math.element])), tail)


def emit_log_words(math: VectorBuilder, x: Value) -> DoubleWord:
    """Logarithm of a positive finite f64 as a sum of two numbers, with a relative error near 2^-63."""
    exponent, mantissa = _split(math, x)
    f = math.ir.fsub(mantissa, math.constant(1.0))
    s = quotient(math, f, math.ir.fadd(f, math.constant(2.0)), f)
    z = multiply_words(math, s, s)
    tail = math.ir.fmul(z.high, math.polynomial(z.high, LOG_TAIL_F64))
    coefficient = add_float(math, DoubleWord(*map(math.constant, TWO_THIRDS)), tail)
    cubic = multiply_words(math, multiply_words(math, s, z), coefficient)
    log_mantissa = add_words(math, multiply_float(math, s, math.constant(2.0)), cubic)
    log_scale = DoubleWord(*(math.ir.fmul(exponent, math.constant(word)) for word in LN2_WORDS))
    log_scale = quick_sum(math, log_scale.high, log_scale.low)
    return add_words(math, log_scale, log_mantissa)
