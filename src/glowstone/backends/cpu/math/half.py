"""Conversion between float32 and the 16-bit floats by integer arithmetic.

The same on every target, and never a call to a support library. Rounds to nearest even; denormals, infinities and NaN
keep their meaning.
"""

from __future__ import annotations

from glowstone.backends.cpu.ir_types import F64, I16, Value, vector
from glowstone.backends.cpu.math.vector_builder import VectorBuilder
from glowstone.types import ElementType

F16_MANTISSA = 10
F32_MANTISSA = 23
MANTISSA_DROP = F32_MANTISSA - F16_MANTISSA
BIAS_DIFFERENCE = 127 - 15
SIGN_DROP = 16
F32_SIGN, F16_SIGN = 0x80000000, 0x8000
F32_INFINITY, F16_INFINITY = 0x7F800000, 0x7C00
F16_QUIET_NAN, BF16_QUIET_NAN = 0x7E00, 0x7FC0
F16_OVERFLOW = 65520.0
"""The smallest float32 that rounds to infinity."""
F16_SMALLEST_NORMAL = 2.0**-14
F16_DENORMAL_ROUNDER = 0.5
"""Its last place is 2^-24, the smallest f16: adding it rounds to multiples of that, which stand in the low bits."""


def emit_bits_to_f32(math: VectorBuilder, bits: Value, element: ElementType) -> Value:
    """i16 holding f16 or bf16 to float32, exactly."""
    wide = math.ir.zext(bits, math.int_type)
    if element is ElementType.BF16:
        return math.from_bits(math.ir.shl(wide, math.integer(SIGN_DROP)))
    sign = math.ir.shl(math.ir.and_(wide, math.integer(F16_SIGN)), math.integer(SIGN_DROP))
    magnitude = math.ir.and_(wide, math.integer(F16_SIGN - 1))
    shifted = math.ir.shl(magnitude, math.integer(MANTISSA_DROP))
    # as float32 bits the number is too small by a power of two; the product is exact for denormals too
    scaled = math.ir.fmul(math.from_bits(shifted), math.constant(2.0**BIAS_DIFFERENCE))
    special = math.ir.or_(shifted, math.integer(F32_INFINITY))
    is_special = math.ir.icmp_unsigned(">=", magnitude, math.integer(F16_INFINITY))
    result = math.select(is_special, special, math.to_bits(scaled))
    return math.from_bits(math.ir.or_(result, sign))


def emit_f32_to_bits(math: VectorBuilder, x: Value, element: ElementType) -> Value:
    """float32 to i16 holding f16 or bf16."""
    bits = _bf16_bits(math, x) if element is ElementType.BF16 else _f16_bits(math, x)
    return math.ir.trunc(bits, vector(I16, math.lanes))


def _bf16_bits(math: VectorBuilder, x: Value) -> Value:
    bits = math.to_bits(x)
    upper = math.ir.lshr(bits, math.integer(SIGN_DROP))
    odd = math.ir.and_(upper, math.integer(1))
    rounded = math.ir.add(bits, math.ir.add(odd, math.integer((1 << (SIGN_DROP - 1)) - 1)))
    rounded = math.ir.lshr(rounded, math.integer(SIGN_DROP))
    return math.select(math.is_nan(x), math.integer(BF16_QUIET_NAN), rounded)


def _f16_bits(math: VectorBuilder, x: Value) -> Value:
    bits = math.to_bits(x)
    sign = math.ir.lshr(math.ir.and_(bits, math.integer(F32_SIGN)), math.integer(SIGN_DROP))
    magnitude = math.unary("fabs", x)
    magnitude_bits = math.ir.and_(bits, math.integer(F32_SIGN - 1))
    odd = math.ir.and_(math.ir.lshr(magnitude_bits, math.integer(MANTISSA_DROP)), math.integer(1))
    round_up = math.ir.add(odd, math.integer((1 << (MANTISSA_DROP - 1)) - 1 - (BIAS_DIFFERENCE << F32_MANTISSA)))
    normal = math.ir.lshr(math.ir.add(magnitude_bits, round_up), math.integer(MANTISSA_DROP))
    shifted = math.to_bits(math.ir.fadd(magnitude, math.constant(F16_DENORMAL_ROUNDER)))
    denormal = math.ir.sub(shifted, math.to_bits(math.constant(F16_DENORMAL_ROUNDER)))
    result = math.select(math.less(magnitude, math.constant(F16_SMALLEST_NORMAL)), denormal, normal)
    fits = math.less(magnitude, math.constant(F16_OVERFLOW))
    result = math.select(fits, result, math.integer(F16_INFINITY))
    result = math.select(math.is_nan(x), math.integer(F16_QUIET_NAN), result)
    return math.ir.or_(result, sign)


def emit_round_to_half(math: VectorBuilder, x: Value, element: ElementType) -> Value:
    """The float32 rounded to the nearest f16 or bf16, as float32."""
    return emit_bits_to_f32(math, emit_f32_to_bits(math, x, element), element)


def emit_f64_to_f32_odd(math: VectorBuilder, x: Value) -> Value:
    """float64 to float32, rounded to odd: rounding that to a 16-bit float then equals rounding once.

    `math` builds float32.
    """
    nearest = math.ir.fptrunc(x, math.type)
    back = math.ir.fpext(nearest, vector(F64, math.lanes))
    bits = math.to_bits(nearest)
    wide = VectorBuilder(math.ir, ElementType.F64, math.lanes, math.has_fma)
    is_above = wide.less(wide.unary("fabs", x), wide.unary("fabs", back))
    is_exact = math.ir.fcmp_unordered("ueq", x, back)
    step = math.select(is_above, math.integer(-1), math.integer(1))
    is_even = math.ir.icmp_signed("==", math.ir.and_(bits, math.integer(1)), math.integer(0))
    moves = math.ir.and_(is_even, math.ir.not_(is_exact))
    return math.from_bits(math.select(moves, math.ir.add(bits, step), bits))
