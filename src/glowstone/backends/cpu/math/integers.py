"""Integer division that never traps, and integer powers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.ir_types import I1, I64, Type, Value, lanes_of, scalar_of, suffix
from glowstone.backends.cpu.math.vector_builder import call_intrinsic, splat

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter


def emit_divide(emitter: Emitter, x: Value, y: Value, signed: bool) -> Value:
    """Quotient toward zero; by zero it is 0, and the lowest number by -1 wraps to itself."""
    builder = emitter.builder
    zero, one, minus_one = (_like(x, value) for value in (0, 1, -1))
    by_zero = builder.icmp_signed("==", y, zero)
    if not signed:
        quotient = builder.udiv(x, builder.select(by_zero, one, y))
        return builder.select(by_zero, zero, quotient)
    by_minus_one = builder.icmp_signed("==", y, minus_one)
    quotient = builder.sdiv(x, builder.select(builder.or_(by_zero, by_minus_one), one, y))
    quotient = builder.select(by_minus_one, builder.sub(zero, x), quotient)
    return builder.select(by_zero, zero, quotient)


def emit_modulus(emitter: Emitter, x: Value, y: Value, signed: bool) -> Value:
    """What the quotient toward zero leaves; 0 where y is 0."""
    builder = emitter.builder
    rest = builder.sub(x, builder.mul(emit_divide(emitter, x, y, signed), y))
    return builder.select(builder.icmp_signed("==", y, _like(x, 0)), _like(x, 0), rest)


def emit_shift(emitter: Emitter, function: str, x: Value, y: Value, signed: bool) -> Value:
    """`shift_left` or `shift_right` by any count; one that is not the number of a bit leaves the sign or nothing."""
    builder = emitter.builder
    last = _like(x, scalar_of(x.type).width - 1)
    is_valid = builder.icmp_unsigned("<=", y, last)
    if function == "shift_right" and signed:
        return builder.ashr(x, builder.select(is_valid, y, last))
    shift = builder.shl if function == "shift_left" else builder.lshr
    zero = _like(x, 0)
    return builder.select(is_valid, shift(x, builder.select(is_valid, y, zero)), zero)


def emit_integer_power(emitter: Emitter, x: Value, y: Value, signed: bool) -> Value:
    """x^y by repeated squaring, wrapping; a negative power is 0 unless x is 1 or -1."""
    builder = emitter.builder
    zero, one, minus_one = (_like(x, value) for value in (0, 1, -1))
    with emitter.for_range(0, _significant_bits(emitter, y), carried=[one, x, y]) as loop:
        result, square, rest = loop.values
        odd = builder.trunc(rest, _like(x, 0, I1).type)
        result = builder.select(odd, builder.mul(result, square), result)
        loop.carry([result, builder.mul(square, square), builder.lshr(rest, one)])
    result = loop.results[0]
    if not signed:
        return result
    odd = builder.trunc(y, _like(x, 0, I1).type)
    of_minus_one = builder.select(odd, minus_one, one)
    reciprocal = builder.select(builder.icmp_signed("==", x, minus_one), of_minus_one, zero)
    reciprocal = builder.select(builder.icmp_signed("==", x, one), one, reciprocal)
    return builder.select(builder.icmp_signed("<", y, zero), reciprocal, result)


def _significant_bits(emitter: Emitter, y: Value) -> Value:
    """i64: bits needed for the largest lane, as unsigned numbers."""
    scalar = scalar_of(y.type)
    if lanes_of(y.type) > 1:
        y = call_intrinsic(emitter.builder, f"llvm.vector.reduce.or.{suffix(y.type)}", scalar, [y])
    leading = call_intrinsic(emitter.builder, f"llvm.ctlz.{suffix(scalar)}", scalar, [y, I1(0)])
    leading = leading if scalar.width == I64.width else emitter.builder.zext(leading, I64)
    return emitter.sub(scalar.width, leading)


def _like(x: Value, value: int, scalar: Type | None = None) -> Value:
    return splat(scalar or scalar_of(x.type), lanes_of(x.type), value)
