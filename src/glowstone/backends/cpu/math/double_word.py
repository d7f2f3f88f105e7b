"""Numbers held as the unevaluated sum of two floats: about twice the precision (Dekker 1971, Knuth)."""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.vector_builder import VectorBuilder

SPLITTER = {23: 4097.0, 52: 134217729.0}
"""2^ceil(p / 2) + 1 by mantissa bits: splits a number in two halves whose products are exact."""


@dataclass(frozen=True)
class DoubleWord:
    """high + low with |low| at most half a unit in the last place of high."""

    high: Value
    low: Value


def quick_sum(math: VectorBuilder, x: Value, y: Value) -> DoubleWord:
    """`x + y` exactly, for |x| >= |y| or x = 0."""
    high = math.ir.fadd(x, y)
    return DoubleWord(high, math.ir.fsub(y, math.ir.fsub(high, x)))


def exact_sum(math: VectorBuilder, x: Value, y: Value) -> DoubleWord:
    """`x + y` exactly."""
    high = math.ir.fadd(x, y)
    part = math.ir.fsub(high, x)
    error_x = math.ir.fsub(x, math.ir.fsub(high, part))
    return DoubleWord(high, math.ir.fadd(error_x, math.ir.fsub(y, part)))


def exact_product(math: VectorBuilder, x: Value, y: Value) -> DoubleWord:
    """`x * y` exactly, barring overflow and underflow."""
    high = math.ir.fmul(x, y)
    if math.has_fma:
        return DoubleWord(high, math.fma(x, y, math.ir.fneg(high)))
    (x_high, x_low), (y_high, y_low) = _halves(math, x), _halves(math, y)
    error = math.ir.fsub(math.ir.fmul(x_high, y_high), high)
    error = math.ir.fadd(error, math.ir.fmul(x_high, y_low))
    error = math.ir.fadd(error, math.ir.fmul(x_low, y_high))
    return DoubleWord(high, math.ir.fadd(error, math.ir.fmul(x_low, y_low)))


def _halves(math: VectorBuilder, x: Value) -> tuple[Value, Value]:
    scaled = math.ir.fmul(x, math.constant(SPLITTER[math.format.mantissa_bits]))
    high = math.ir.fsub(scaled, math.ir.fsub(scaled, x))
    return high, math.ir.fsub(x, high)


def add_words(math: VectorBuilder, x: DoubleWord, y: DoubleWord) -> DoubleWord:
    """`x + y`."""
    total = exact_sum(math, x.high, y.high)
    return quick_sum(math, total.high, math.ir.fadd(total.low, math.ir.fadd(x.low, y.low)))


def add_float(math: VectorBuilder, x: DoubleWord, y: Value) -> DoubleWord:
    """`x + y`."""
    total = exact_sum(math, x.high, y)
    return quick_sum(math, total.high, math.ir.fadd(total.low, x.low))


def multiply_words(math: VectorBuilder, x: DoubleWord, y: DoubleWord) -> DoubleWord:
    """`x * y`."""
    product = exact_product(math, x.high, y.high)
    cross = math.ir.fadd(math.ir.fmul(x.high, y.low), math.ir.fmul(x.low, y.high))
    return quick_sum(math, product.high, math.ir.fadd(product.low, cross))


def multiply_float(math: VectorBuilder, x: DoubleWord, y: Value) -> DoubleWord:
    """`x * y`."""
    product = exact_product(math, x.high, y)
    return quick_sum(math, product.high, math.ir.fadd(product.low, math.ir.fmul(x.low, y)))


def quotient(math: VectorBuilder, x: Value, y_high: Value, part: Value) -> DoubleWord:
    """`x / (2 + part)`, where `y_high` is 2 + part rounded."""
    y_low = math.ir.fsub(part, math.ir.fsub(y_high, math.constant(2.0)))
    high = math.ir.fdiv(x, y_high)
    product = exact_product(math, high, y_high)
    remainder = math.ir.fsub(math.ir.fsub(x, product.high), product.low)
    remainder = math.ir.fsub(remainder, math.ir.fmul(high, y_low))
    return quick_sum(math, high, math.ir.fdiv(remainder, y_high))
