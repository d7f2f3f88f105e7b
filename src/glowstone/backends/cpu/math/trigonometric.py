"""Sine, cosine and tangent of float64, by polynomials on [-pi/4, pi/4] that interpolate at Chebyshev nodes."""

from __future__ import annotations

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.quadrants import emit_quadrant
from glowstone.backends.cpu.math.vector_builder import VectorBuilder

# (sin r - r) / r^3 in powers of r^2
SINE = (
    -0.16666666666666666,
    0.008333333333333331,
    -0.00019841269841265065,
    2.7557319219339167e-06,
    -2.5052106232447578e-08,
    1.6058531618986144e-10,
    -7.58669711770682e-13,
)
# (cos r - 1 + r^2 / 2) / r^4 in powers of r^2
COSINE = (
    0.041666666666666664,
    -0.0013888888888888887,
    2.4801587301584645e-05,
    -2.7557319221402824e-07,
    2.087675579108042e-09,
    -1.1470460887609959e-11,
    4.745871902043237e-14,
)


def emit_sin(math: VectorBuilder, x: Value) -> Value:
    """Sine; NaN of infinities."""
    rest, quadrant = emit_quadrant(math, x)
    result = _turned(math, quadrant, _sine(math, rest), _cosine(math, rest))
    return _keep_zero(math, x, result)


def emit_cos(math: VectorBuilder, x: Value) -> Value:
    """Cosine: the sine a quarter turn ahead."""
    rest, quadrant = emit_quadrant(math, x)
    ahead = math.ir.add(quadrant, math.integer(1))
    return _turned(math, ahead, _sine(math, rest), _cosine(math, rest))


def emit_tan(math: VectorBuilder, x: Value) -> Value:
    """Tangent: sine by cosine, or minus cosine by sine."""
    rest, quadrant = emit_quadrant(math, x)
    sine, cosine = _sine(math, rest), _cosine(math, rest)
    is_odd = _has_bit(math, quadrant, 1)
    above, below = math.select(is_odd, cosine, sine), math.select(is_odd, math.ir.fneg(sine), cosine)
    return _keep_zero(math, x, math.ir.fdiv(above, below))


def _turned(math: VectorBuilder, quadrant: Value, sine: Value, cosine: Value) -> Value:
    """The sine of an angle from sine and cosine of its rest."""
    result = math.select(_has_bit(math, quadrant, 1), cosine, sine)
    return math.select(_has_bit(math, quadrant, 2), math.ir.fneg(result), result)


def _has_bit(math: VectorBuilder, number: Value, bit: int) -> Value:
    return math.ir.icmp_signed("!=", math.ir.and_(number, math.integer(bit)), math.integer(0))


def _keep_zero(math: VectorBuilder, x: Value, result: Value) -> Value:
    """Zero with its sign, which sums lose."""
    return math.select(math.equal(x, math.constant(0.0)), x, result)


def _sine(math: VectorBuilder, rest: Value) -> Value:
    square = math.ir.fmul(rest, rest)
    return math.fma(math.ir.fmul(rest, square), math.polynomial(square, SINE), rest)


def _cosine(math: VectorBuilder, rest: Value) -> Value:
    square = math.ir.fmul(rest, rest)
    half = math.ir.fmul(square, math.constant(0.5))
    head = math.ir.fsub(math.constant(1.0), half)
    lost = math.ir.fsub(math.ir.fsub(math.constant(1.0), head), half)
    tail = math.fma(math.ir.fmul(square, square), math.polynomial(square, COSINE), lost)
    return math.ir.fadd(head, tail)
