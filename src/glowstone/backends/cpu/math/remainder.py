"""The exact remainder of floats, as C's fmod: schoolbook division in binary, each step without rounding."""

from __future__ import annotations

import math as numbers

from glowstone.backends.cpu.ir_types import I64, Value, scalar_of
from glowstone.backends.cpu.loops import Loop
from glowstone.backends.cpu.math.vector_builder import VectorBuilder, call_intrinsic


def emit_remainder(math: VectorBuilder, x: Value, y: Value) -> Value:
    """x - trunc(x / y) y with the sign of x; NaN where x is infinite or y is 0."""
    zero, infinity = math.constant(0.0), math.constant(numbers.inf)
    divisor = math.unary("fabs", y)
    is_plain = math.ir.and_(math.less(zero, divisor), math.less(math.unary("fabs", x), infinity))
    rest = math.select(is_plain, math.unary("fabs", x), zero)
    divisor = math.select(is_plain, divisor, math.constant(1.0))
    steps = _doublings(math, rest, divisor)
    with Loop(math.ir, I64(0), steps, I64(1), [divisor]) as growth:
        doubled = math.ir.fadd(growth.values[0], growth.values[0])
        growth.carry([math.select(math.ir.fcmp_ordered("<=", doubled, rest), doubled, growth.values[0])])
    with Loop(math.ir, I64(0), math.ir.add(steps, I64(1)), I64(1), [rest, growth.results[0]]) as division:
        part, multiple = division.values
        fits = math.ir.and_(math.ir.fcmp_ordered("<=", multiple, part), math.ir.fcmp_ordered("<=", divisor, multiple))
        halved = math.ir.fmul(multiple, math.constant(0.5))
        next_multiple = math.select(math.less(divisor, multiple), halved, zero)
        division.carry([math.select(fits, math.ir.fsub(part, multiple), part), next_multiple])
    result = math.copy_sign(division.results[0], x)
    result = math.select(is_plain, result, math.constant(numbers.nan))
    return math.select(math.is_nan(y), y, result)


def _doublings(math: VectorBuilder, x: Value, y: Value) -> Value:
    """i64: a number of doublings after which y of any lane is above x / 2; 0 where all are already."""
    lowest_normal = math.integer(1 << math.format.mantissa_bits)
    exponents = [math.ir.lshr(math.to_bits(number), math.integer(math.format.mantissa_bits)) for number in (x, y)]
    difference = math.ir.sub(*exponents)
    # a denormal needs as many more as it has leading zeros
    is_small = math.ir.icmp_unsigned("<", math.to_bits(y), lowest_normal)
    spare = math.select(is_small, math.integer(math.format.mantissa_bits), math.integer(0))
    needed = math.ir.add(difference, spare)
    needed = math.select(math.less(x, y), math.integer(0), needed)
    if math.lanes > 1:
        scalar = scalar_of(needed.type)
        needed = call_intrinsic(math.ir, f"llvm.vector.reduce.smax.v{math.lanes}{scalar}", scalar, [needed])
    return needed if math.format.bits == I64.width else math.ir.sext(needed, I64)
