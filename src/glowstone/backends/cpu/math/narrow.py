"""Conversion of narrow numbers to and from the types to compute in, by integer arithmetic.

In registers a narrow number is the byte that it is in memory. The same on every target, and never a call to a support
library. The meaning is that of `glowstone.scalar.narrow`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.ir_types import I8, Value, vector
from glowstone.backends.cpu.math.vector_builder import VectorBuilder, splat
from glowstone.types import NARROW_FLOATS, ElementType, NarrowFloat

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

F32_MANTISSA, F32_BIAS = 23, 127
F32_SIGN, F32_INFINITY, F32_QUIET_NAN = 0x80000000, 0x7F800000, 0x7FC00000
F32_NORMAL = 1 << F32_MANTISSA
"""Bits of the smallest float32 that is not denormal."""
BYTE = 8


def emit_narrow_integer_to_byte(emitter: Emitter, code: Value, element: ElementType, lanes: int) -> Value:
    """The integer in the low bits of a byte, whatever stands above them, as a whole byte."""
    unused = splat(I8, lanes, BYTE - element.bits)
    shift_back = emitter.builder.ashr if element.is_signed else emitter.builder.lshr
    return shift_back(emitter.builder.shl(code, unused), unused)


def emit_byte_to_narrow_integer(emitter: Emitter, number: Value, element: ElementType, lanes: int) -> Value:
    """The low bits of a byte."""
    return emitter.builder.and_(number, splat(I8, lanes, (1 << element.bits) - 1))


def emit_narrow_to_f32(math: VectorBuilder, code: Value, element: ElementType) -> Value:
    """The byte of a narrow float to float32, exactly. `math` builds float32."""
    form = NARROW_FLOATS[element]
    wide = math.ir.zext(code, math.int_type)
    if form.is_power:
        return _power_to_f32(math, wide, form)
    sign_shift = 32 - form.bits
    sign = math.ir.and_(math.ir.shl(wide, math.integer(sign_shift)), math.integer(F32_SIGN))
    magnitude = math.ir.and_(wide, math.integer(form.sign - 1))
    shifted = math.ir.shl(magnitude, math.integer(F32_MANTISSA - form.mantissa_bits))
    # as float32 bits the number is too small by a power of two; the product is exact for denormals too
    scaled = math.ir.fmul(math.from_bits(shifted), math.constant(2.0 ** (F32_BIAS - form.bias)))
    result = math.to_bits(scaled)
    if form.infinity is not None:
        infinite = math.ir.icmp_unsigned("==", magnitude, math.integer(form.infinity))
        result = math.select(infinite, math.integer(F32_INFINITY), result)
    result = math.ir.or_(result, sign)
    if form.nan is not None:
        result = math.select(_is_narrow_nan(math, wide, magnitude, form), math.integer(F32_QUIET_NAN), result)
    return math.from_bits(result)


def _is_narrow_nan(math: VectorBuilder, wide: Value, magnitude: Value, form: NarrowFloat) -> Value:
    if form.has_one_zero:
        return math.ir.icmp_unsigned("==", wide, math.integer(form.sign))
    last_number = form.largest if form.infinity is None else form.infinity
    return math.ir.icmp_unsigned(">", magnitude, math.integer(last_number))


def _power_to_f32(math: VectorBuilder, exponent: Value, form: NarrowFloat) -> Value:
    """The code is the exponent of float32 as well; exponent 0 is the denormal with the upper bit of the mantissa."""
    assert form.nan is not None
    shifted = math.ir.shl(exponent, math.integer(F32_MANTISSA))
    is_least = math.ir.icmp_unsigned("==", exponent, math.integer(0))
    bits = math.select(is_least, math.integer(F32_NORMAL >> 1), shifted)
    is_nan = math.ir.icmp_unsigned("==", exponent, math.integer(form.nan))
    return math.from_bits(math.select(is_nan, math.integer(F32_QUIET_NAN), bits))


def emit_f32_to_narrow(math: VectorBuilder, x: Value, element: ElementType, saturates: bool) -> Value:
    """float32 to the byte of a narrow float: to nearest, halves to even; powers of two (E8M0) up."""
    form = NARROW_FLOATS[element]
    bits = _power_code(math, x, form, saturates) if form.is_power else _narrow_bits(math, x, form, saturates)
    return math.ir.trunc(bits, vector(I8, math.lanes))


def _narrow_bits(math: VectorBuilder, x: Value, form: NarrowFloat, saturates: bool) -> Value:
    code = _nearest_code(math, x, form)
    sign = math.ir.lshr(math.ir.and_(math.to_bits(x), math.integer(F32_SIGN)), math.integer(32 - form.bits))
    if form.has_one_zero:
        is_zero = math.ir.icmp_unsigned("==", code, math.integer(0))
        sign = math.select(is_zero, math.integer(0), sign)
    fits = math.ir.icmp_unsigned("<=", code, math.integer(form.largest))
    beyond = math.integer(form.largest if saturates else form.overflow)
    # the NaN of formats with one zero has the sign's bit already
    bits = math.ir.or_(math.select(fits, code, beyond), sign)
    return math.select(math.is_nan(x), math.integer(form.nan or 0), bits)


def _nearest_code(math: VectorBuilder, x: Value, form: NarrowFloat) -> Value:
    """The code of |x| as if exponents had no end; more than any code for infinity."""
    drop = F32_MANTISSA - form.mantissa_bits
    magnitude = math.unary("fabs", x)
    bits = math.to_bits(magnitude)
    odd = math.ir.and_(math.ir.lshr(bits, math.integer(drop)), math.integer(1))
    round_up = math.ir.add(odd, math.integer((1 << (drop - 1)) - 1 - ((F32_BIAS - form.bias) << F32_MANTISSA)))
    normal = math.ir.lshr(math.ir.add(bits, round_up), math.integer(drop))
    # its last place is the smallest number of the format: adding it rounds to multiples of that, in the low bits
    rounder = math.constant(2.0 ** (1 - form.bias - form.mantissa_bits + F32_MANTISSA))
    denormal = math.ir.sub(math.to_bits(math.ir.fadd(magnitude, rounder)), math.to_bits(rounder))
    return math.select(math.less(magnitude, math.constant(2.0 ** (1 - form.bias))), denormal, normal)


def _power_code(math: VectorBuilder, x: Value, form: NarrowFloat, saturates: bool) -> Value:
    """The exponent of the smallest power of two that is not below x. Negative numbers have none."""
    assert form.nan is not None
    bits = math.to_bits(x)
    # 2^-127 is a denormal half way up: what is above it goes to 2^-126
    is_denormal = math.ir.icmp_unsigned("<", bits, math.integer(F32_NORMAL))
    round_up = math.select(is_denormal, math.integer((F32_NORMAL >> 1) - 1), math.integer(F32_NORMAL - 1))
    code = math.ir.lshr(math.ir.add(bits, round_up), math.integer(F32_MANTISSA))
    beyond = math.integer(form.largest if saturates else form.nan)
    result = math.select(math.ir.icmp_unsigned("<=", code, math.integer(form.largest)), code, beyond)
    least = math.constant(2.0**-F32_BIAS)
    if not saturates:
        result = math.select(math.less(x, least), math.integer(form.nan), result)
    zero = math.constant(0.0)
    result = math.select(math.equal(x, zero), math.integer(0 if saturates else form.nan), result)
    return math.select(math.ir.fcmp_unordered("<", x, zero), math.integer(form.nan), result)
