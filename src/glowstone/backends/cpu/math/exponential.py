"""exp, and exp(x) - 1 for arguments that are not positive.

exp(x) = 2^n * exp(r) with n = round(x / ln 2) and |r| <= ln(2) / 2; exp(r) = 1 + r + r^2 P(r), where P interpolates at
Chebyshev nodes. ln 2 is split in two so that n times its upper part is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.vector_builder import VectorBuilder
from glowstone.types import ElementType

EXPM1_IS_MINUS_ONE = 80.0
SIGMOID_IS_ONE = 40.0
LOG2_E = 1.4426950408889634
SPARE_EXPONENT = {ElementType.F32: 64, ElementType.F64: 512}
"""How far 2^n is shifted toward 1 so that it is a normal number for every result."""


@dataclass(frozen=True)
class _Constants:
    """`lowest` gives 0 and `highest` infinity, both without leaving the range of the exponent arithmetic."""

    lowest: float
    highest: float
    ln2_high: float
    ln2_low: float
    polynomial: tuple[float, ...]


_CONSTANTS = {
    ElementType.F32: _Constants(
        lowest=-104.0,
        highest=89.0,
        ln2_high=0.693145751953125,
        ln2_low=1.4286068203094172e-06,
        polynomial=(0.5, 0.1666657702559799, 0.041666554662050534, 0.008363173074513711, 0.001392617611993558),
    ),
    ElementType.F64: _Constants(
        lowest=-746.0,
        highest=710.0,
        ln2_high=0.6931471803691238,
        ln2_low=1.9082149292705877e-10,
        polynomial=(
            0.5,
            0.1666666666666667,
            0.04166666666666667,
            0.008333333333326141,
            0.0013888888888883752,
            0.00019841269874800493,
            2.4801587325533363e-05,
            2.7557255425746435e-06,
            2.7557273661348637e-07,
            2.510520637395701e-08,
            2.0914679376583935e-09,
        ),
    ),
}


def emit_exp(math: VectorBuilder, x: Value) -> Value:
    """e^x, also where the result is denormal."""
    constants = _CONSTANTS[math.element]
    x = math.at_most(math.at_least(x, constants.lowest), constants.highest)
    is_negative = math.ir.icmp_signed("<", math.to_bits(x), math.integer(0))
    spare = SPARE_EXPONENT[math.element]
    bits = (math.integer(_exponent_bits(math, exponent)) for exponent in (spare, -spare))
    lasts = (math.constant(2.0**-exponent) for exponent in (spare, -spare))
    offset, last = math.select(is_negative, *bits), math.select(is_negative, *lasts)
    return _scaled(math, x, offset, last)


def emit_exp_not_positive(math: VectorBuilder, x: Value) -> Value:
    """e^x for x that is not above 0, in fewer operations."""
    x = math.at_least(x, _CONSTANTS[math.element].lowest)
    spare = SPARE_EXPONENT[math.element]
    return _scaled(math, x, math.integer(_exponent_bits(math, spare)), math.constant(2.0**-spare))


def emit_sigmoid(math: VectorBuilder, x: Value) -> Value:
    """1 / (1 + e^-x) as e^x / (1 + e^x), for x up to where that is 1: results near 0 keep their digits."""
    x = math.at_most(math.at_least(x, _CONSTANTS[math.element].lowest), SIGMOID_IS_ONE)
    spare = SPARE_EXPONENT[math.element]
    power = _scaled(math, x, math.integer(_exponent_bits(math, spare)), math.constant(2.0**-spare))
    return math.ir.fdiv(power, math.ir.fadd(power, math.constant(1.0)))


def _exponent_bits(math: VectorBuilder, exponent: int) -> int:
    """The number 2^exponent as bits."""
    return (exponent + math.format.bias) << math.format.mantissa_bits


def _scaled(math: VectorBuilder, x: Value, offset: Value, last: Value) -> Value:
    """e^x, where 2^n is applied as 2^n times the number with bits `offset`, then times `last`.

    2^n itself may be no normal number; both factors always are, and only the last product rounds.
    """
    shifted, r = _reduced(math, x)
    power = math.polynomial(r, (1.0, 1.0, *_CONSTANTS[math.element].polynomial))
    # all but the low bits of the rounder are shifted out, and n is left as an exponent
    exponent = math.ir.shl(math.to_bits(shifted), math.integer(math.format.mantissa_bits))
    scale = math.from_bits(math.ir.add(exponent, offset))
    return math.ir.fmul(math.ir.fmul(power, scale), last)


def emit_expm1_not_positive(math: VectorBuilder, x: Value) -> Value:
    """e^x - 1 for x in [-80, 0], with a small relative error near 0."""
    shifted, r = _reduced(math, x)
    tail = math.polynomial(r, _CONSTANTS[math.element].polynomial)
    power = math.fma(math.ir.fmul(r, r), tail, r)
    exponent = math.ir.shl(math.to_bits(shifted), math.integer(math.format.mantissa_bits))
    scale = math.from_bits(math.ir.add(exponent, math.integer(_exponent_bits(math, 0))))
    return math.fma(scale, power, math.ir.fsub(scale, math.constant(1.0)))


def emit_expm1(math: VectorBuilder, x: Value) -> Value:
    """e^x - 1: -m / (1 + m) with m = e^-x - 1 for x in (0, 1], where e^x would lose the difference."""
    one, zero = math.constant(1.0), math.constant(0.0)
    above_zero, above_one = math.less(zero, x), math.less(one, x)
    distance = math.at_most(math.unary("fabs", x), EXPM1_IS_MINUS_ONE)
    below = emit_expm1_not_positive(math, math.ir.fneg(distance))
    small = math.ir.fdiv(math.ir.fneg(below), math.ir.fadd(below, one))
    large = math.ir.fsub(emit_exp(math, x), one)
    result = math.select(above_one, large, math.select(above_zero, small, below))
    return math.select(math.equal(x, zero), x, result)


def _reduced(math: VectorBuilder, x: Value) -> tuple[Value, Value]:
    """(n above the rounder, r) with x = n ln 2 + r."""
    constants = _CONSTANTS[math.element]
    shifted = math.fma(x, math.constant(LOG2_E), math.constant(math.format.rounder))
    count = math.ir.fsub(shifted, math.constant(math.format.rounder))
    r = math.fma(count, math.constant(-constants.ln2_high), x)
    return shifted, math.fma(count, math.constant(-constants.ln2_low), r)
