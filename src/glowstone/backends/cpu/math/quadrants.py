"""Reduction of angles to [-pi/4, pi/4] and a count of quarter turns, for arguments of any size.

Small angles are reduced by pi/2 in three parts, of which the products with a count of 20 bits are exact (Cody and
Waite). For large ones the product with 2/pi is formed in integers of 192 bits, of which the upper two are the quadrant
(Payne and Hanek). All is in float64.
"""

from __future__ import annotations

import functools

from llvmlite import ir

from glowstone.backends.cpu.ir_types import F64, I1, I8, I64, Value
from glowstone.backends.cpu.loops import Loop
from glowstone.backends.cpu.math.vector_builder import VectorBuilder, call_intrinsic

TWO_OVER_PI = 0.6366197723675814
HALF_PI_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""Two of 33 bits, and the rest."""
HALF_PI = 1.5707963267948966
LARGE = 2.0**20
"""From here on an angle is reduced in integers."""
INFINITY = float("inf")

TABLE_NAME = "two_over_pi"
TABLE_BITS = 1216
"""Bits of 2/pi: all that the largest exponent reaches."""
PRODUCT_BITS, WINDOW_BITS = 192, 256
FRACTION_BITS = PRODUCT_BITS - 2
MANTISSA_BITS, EXPONENT_MASK, BIAS = 52, 0x7FF, 1023
PRODUCT, WINDOW = ir.IntType(PRODUCT_BITS), ir.IntType(WINDOW_BITS)


def emit_quadrant(math: VectorBuilder, x: Value) -> tuple[Value, Value]:
    """(r, q) with x = q pi/2 + r up to whole turns, |r| <= pi/4; q as int64, of which the two lowest bits count."""
    shifted = math.fma(x, math.constant(TWO_OVER_PI), math.constant(math.format.rounder))
    count = math.ir.fsub(shifted, math.constant(math.format.rounder))
    rest = x
    for part in HALF_PI_PARTS:
        rest = math.fma(count, math.constant(-part), rest)
    return _with_large(math, x, rest, math.to_bits(shifted))


def _with_large(math: VectorBuilder, x: Value, rest: Value, quadrant: Value) -> tuple[Value, Value]:
    """The same, where large angles are replaced; a branch around it, for they are rare."""
    builder, magnitude = math.ir, math.unary("fabs", x)
    is_large = builder.and_(
        builder.fcmp_ordered("<=", math.constant(LARGE), magnitude), math.less(magnitude, math.constant(INFINITY))
    )
    before = builder.block
    with builder.if_then(_any(math, is_large), likely=False):
        some_large = math.select(is_large, x, math.constant(LARGE))
        large_rest, large_quadrant = _reduce_lanes(math, some_large)
        large_rest = math.select(is_large, large_rest, rest)
        large_quadrant = math.select(is_large, large_quadrant, quadrant)
        inside = builder.block
    merged = []
    for value, replaced in ((rest, large_rest), (quadrant, large_quadrant)):
        phi = builder.phi(value.type)
        phi.add_incoming(value, before)
        phi.add_incoming(replaced, inside)
        merged.append(phi)
    return merged[0], merged[1]


def _any(math: VectorBuilder, mask: Value) -> Value:
    if math.lanes == 1:
        return mask
    return call_intrinsic(math.ir, f"llvm.vector.reduce.or.v{math.lanes}i1", I1, [mask])


def _reduce_lanes(math: VectorBuilder, x: Value) -> tuple[Value, Value]:
    if math.lanes == 1:
        return _reduce_large(math.ir, x)
    undefined = [ir.Constant(kind, ir.Undefined) for kind in (math.type, math.int_type)]
    with Loop(math.ir, I64(0), I64(math.lanes), I64(1), undefined) as loop:
        rest, quadrant = _reduce_large(math.ir, math.ir.extract_element(x, loop.index))
        rests, quadrants = loop.values
        loop.carry(
            [
                math.ir.insert_element(rests, rest, loop.index),
                math.ir.insert_element(quadrants, quadrant, loop.index),
            ]
        )
    return loop.results[0], loop.results[1]


def _reduce_large(builder: ir.IRBuilder, x: Value) -> tuple[Value, Value]:
    """One finite angle of at least `LARGE`."""
    bits = builder.bitcast(x, I64)
    is_negative = builder.icmp_signed("<", bits, I64(0))
    exponent = builder.and_(builder.lshr(bits, I64(MANTISSA_BITS)), I64(EXPONENT_MASK))
    mantissa = builder.or_(builder.and_(bits, I64((1 << MANTISSA_BITS) - 1)), I64(1 << MANTISSA_BITS))
    # x = mantissa * 2^(exponent - bias - 52), so 2/pi is needed from this bit on; higher ones give whole turns
    lowest = builder.sub(I64(TABLE_BITS - FRACTION_BITS + BIAS + MANTISSA_BITS), exponent)
    turns = builder.mul(builder.zext(mantissa, PRODUCT), _table_bits(builder, lowest))
    half = PRODUCT(1 << (FRACTION_BITS - 1))
    quadrant = builder.trunc(builder.lshr(builder.add(turns, half), PRODUCT(FRACTION_BITS)), I64)
    fraction = builder.shl(turns, PRODUCT(PRODUCT_BITS - FRACTION_BITS))
    is_below = builder.icmp_signed("<", fraction, PRODUCT(0))
    magnitude = _fraction(builder, builder.select(is_below, builder.neg(fraction), fraction))
    rest = builder.fmul(magnitude, F64(HALF_PI))
    rest = builder.select(builder.xor(is_negative, is_below), builder.fneg(rest), rest)
    return rest, builder.select(is_negative, builder.neg(quadrant), quadrant)


def _table_bits(builder: ir.IRBuilder, lowest: Value) -> Value:
    """`PRODUCT_BITS` bits of 2/pi, from bit number `lowest` on."""
    start = builder.gep(_table(builder.module), [builder.lshr(lowest, I64(3))], source_etype=I8)
    window = builder.load(start, typ=WINDOW, align=1)
    shift = builder.zext(builder.and_(lowest, I64(7)), WINDOW)
    return builder.trunc(builder.lshr(window, shift), PRODUCT)


def _table(module: ir.Module) -> Value:
    """The bits of 2/pi in memory, lowest first, with as many zeros behind as a window may reach."""
    if TABLE_NAME in module.globals:
        return module.globals[TABLE_NAME]
    content = two_over_pi(TABLE_BITS).to_bytes((TABLE_BITS + WINDOW_BITS) // 8, "little")
    kind = ir.ArrayType(I8, len(content))
    table = ir.GlobalVariable(module, kind, TABLE_NAME)
    table.linkage = "private"
    table.global_constant = True
    table.initializer = ir.Constant(kind, bytearray(content))
    return table


def _fraction(builder: ir.IRBuilder, bits: Value) -> Value:
    """`bits / 2^PRODUCT_BITS` as float64, with all bits of it however small it is."""
    zeros = call_intrinsic(builder, f"llvm.ctlz.i{PRODUCT_BITS}", PRODUCT, [bits, I1(0)])
    normal = builder.lshr(builder.shl(bits, zeros), PRODUCT(PRODUCT_BITS - I64.width))
    scale = builder.sub(I64(BIAS - I64.width), builder.trunc(zeros, I64))
    scale = builder.bitcast(builder.shl(scale, I64(MANTISSA_BITS)), F64)
    return builder.fmul(builder.uitofp(builder.trunc(normal, I64), F64), scale)


@functools.cache
def two_over_pi(bits: int) -> int:
    """2/pi times 2^bits, rounded down; pi by Machin's formula."""
    guarded = bits + 64
    pi = 4 * (4 * _arctangent_of_inverse(5, guarded) - _arctangent_of_inverse(239, guarded))
    return (2 << (bits + guarded)) // pi


def _arctangent_of_inverse(n: int, bits: int) -> int:
    """atan(1 / n) times 2^bits."""
    power = (1 << bits) // n
    total, divisor = 0, 1
    while power:
        total += power // divisor if divisor % 4 == 1 else -(power // divisor)
        power //= n * n
        divisor += 2
    return total
