"""tanh and erf: odd functions that approach 1, both from exp(x) - 1 without cancellation near 0."""

from __future__ import annotations

from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.exponential import emit_expm1_not_positive
from glowstone.backends.cpu.math.vector_builder import VectorBuilder
from glowstone.types import ElementType

TANH_IS_ONE = {ElementType.F32: 10.0, ElementType.F64: 20.0}
ERF_IS_ONE = {ElementType.F32: 3.93, ElementType.F64: 6.0}

# -log(1 - erf(t)) / t in powers of t, interpolated at Chebyshev nodes of [0, ERF_IS_ONE]
ERF = {
    ElementType.F32: (
        1.1283791676295052,
        0.6366197624943849,
        0.10277151106870208,
        -0.019114732777371125,
        -0.00027012297996149815,
        0.001835273787256531,
        -0.0007794397921660791,
        0.00019096295917898285,
        -2.9398915310574556e-05,
        2.6412277730526737e-06,
        -1.0579147924078373e-07,
    ),
    ElementType.F64: (
        1.1283791670955126,
        0.6366197723675769,
        0.10277260330220897,
        -0.019128447015583323,
        -0.00020919455499851555,
        0.001696205241443542,
        -0.0005901192663251407,
        2.5854037671083504e-05,
        6.456296750474953e-05,
        -2.9881052414769117e-05,
        3.677623639376195e-06,
        2.4659606012991177e-06,
        -1.3366566500486082e-06,
        -2.37252553408519e-08,
        3.9871332817766125e-07,
        -2.9764701290316146e-07,
        1.4221376155593878e-07,
        -5.1885226005766796e-08,
        1.5295102677796775e-08,
        -3.725404957303352e-09,
        7.549727420921452e-10,
        -1.2690078571710275e-10,
        1.745747176402696e-11,
        -1.9085193965950585e-12,
        1.5490342842304438e-13,
        -7.438397058724943e-15,
        -1.2429105384430206e-16,
        6.376084696439624e-17,
        -6.687703238814845e-18,
        4.205190853483832e-19,
        -1.7047929800818736e-20,
        4.153632903571564e-22,
        -4.666246315945447e-24,
    ),
}


def emit_tanh(math: VectorBuilder, x: Value) -> Value:
    """Hyperbolic tangent: -m / (2 + m) with m = exp(-2 |x|) - 1, and the sign of x."""
    magnitude = math.at_most(math.unary("fabs", x), TANH_IS_ONE[math.element])
    below_one = emit_expm1_not_positive(math, math.ir.fmul(magnitude, math.constant(-2.0)))
    result = math.ir.fdiv(below_one, math.ir.fadd(below_one, math.constant(2.0)))
    return math.copy_sign(result, x)


def emit_erf(math: VectorBuilder, x: Value) -> Value:
    """Error function: 1 - exp(-t Q(t)) with t = |x|, and the sign of x."""
    magnitude = math.at_most(math.unary("fabs", x), ERF_IS_ONE[math.element])
    logarithm = math.ir.fmul(math.ir.fneg(magnitude), math.polynomial(magnitude, ERF[math.element]))
    return math.copy_sign(emit_expm1_not_positive(math, logarithm), x)
