"""Prints the polynomials of `glowstone.backends.cpu.math`, from exact arithmetic.

Each interpolates a smooth function at Chebyshev nodes, which is within a few per cent of the best polynomial. All is
computed with 110 decimal digits and rounded once at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext

DIGITS = 110
TINY = Decimal(10) ** -(DIGITS - 5)
CHECKED_POINTS = 200
PI = "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679821480865"

Function = Callable[[Decimal], Decimal]


@dataclass(frozen=True)
class Fit:
    """A function to approximate on [low, high] by a polynomial of a degree."""

    name: str
    function: Function
    low: Decimal
    high: Decimal
    degree: int


def error_function(x: Decimal) -> Decimal:
    """erf by its Taylor series."""
    pi = Decimal(PI)
    total, term, number = Decimal(0), x, 0
    while abs(term) > TINY:
        total += term / (2 * number + 1)
        number += 1
        term *= -x * x / number
    return 2 / pi.sqrt() * total


def exp_tail(r: Decimal) -> Decimal:
    """(e^r - 1 - r) / r^2."""
    return (r.exp() - 1 - r) / (r * r)


def log1p_tail(f: Decimal) -> Decimal:
    """(log(1 + f) - f + f^2 / 2) / f^3."""
    return ((1 + f).ln() - f + f * f / 2) / f**3


def log_ratio_tail(z: Decimal) -> Decimal:
    """(log((1 + s) / (1 - s)) - 2 s) / s^3 with s^2 = z."""
    s = z.sqrt()
    return (((1 + s) / (1 - s)).ln() - 2 * s) / (s * z)


def log_ratio_second_tail(z: Decimal) -> Decimal:
    """What `log_ratio_tail` leaves after 2 / 3, divided by z."""
    return (log_ratio_tail(z) - Decimal(2) / 3) / z


def erfc_logarithm(t: Decimal) -> Decimal:
    """-log(1 - erf t) / t."""
    return -(1 - error_function(t)).ln() / t


def alternating_series(first: Decimal, z: Decimal, divisor: Callable[[int], Decimal]) -> Decimal:
    """first - first z / d(1) + first z^2 / (d(1) d(2)) - ..."""
    total, term, number = Decimal(0), first, 0
    while abs(term) > TINY:
        total += term
        number += 1
        term *= -z / divisor(number)
    return total


def sine_tail(z: Decimal) -> Decimal:
    """(sin r - r) / r^3 with r^2 = z."""
    return alternating_series(Decimal(-1) / 6, z, lambda n: Decimal((2 * n + 2) * (2 * n + 3)))


def cosine_tail(z: Decimal) -> Decimal:
    """(cos r - 1 + r^2 / 2) / r^4 with r^2 = z."""
    return alternating_series(Decimal(1) / 24, z, lambda n: Decimal((2 * n + 3) * (2 * n + 4)))


def arctangent_tail(z: Decimal) -> Decimal:
    """(atan t - t) / t^3 with t^2 = z."""
    return alternating_series(Decimal(-1) / 3, z, lambda n: Decimal(2 * n + 3) / (2 * n + 1))


def interpolate(fit: Fit) -> list[Decimal]:
    """Coefficients, lowest first, by Newton's divided differences."""
    count = fit.degree + 1
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    nodes = [middle + half * Decimal(math.cos(math.pi * (2 * i + 1) / (2 * count))) for i in range(count)]
    differences = [fit.function(node) for node in nodes]
    for order in range(1, count):
        for i in range(count - 1, order - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order])
    coefficients = [differences[-1]]
    for i in range(count - 2, -1, -1):
        shifted = [Decimal(0), *coefficients]
        for power, coefficient in enumerate(coefficients):
            shifted[power] -= coefficient * nodes[i]
        shifted[0] += differences[i]
        coefficients = shifted
    return coefficients


def worst_error(fit: Fit, coefficients: list[Decimal]) -> float:
    """Largest error on a grid that avoids removable singularities."""
    worst = Decimal(0)
    for i in range(CHECKED_POINTS):
        x = fit.low + (fit.high - fit.low) * (i + Decimal("0.37")) / CHECKED_POINTS
        value = Decimal(0)
        for coefficient in reversed(coefficients):
            value = value * x + coefficient
        worst = max(worst, abs(value - fit.function(x)))
    return float(worst)


def fits() -> list[Fit]:
    """All polynomials in use."""
    near_zero = Decimal("1e-12")
    half_ln2 = Decimal(2).ln() / 2
    root = Decimal(2).sqrt()
    s_squared = ((root - 1) / (root + 1)) ** 2
    return [
        Fit("exponential: f32", exp_tail, -half_ln2, half_ln2, 4),
        Fit("exponential: f64", exp_tail, -half_ln2, half_ln2, 10),
        Fit("logarithm: LOG_F32", log1p_tail, 1 / root - 1, root - 1, 8),
        Fit("logarithm: LOG_F64", log_ratio_tail, near_zero, s_squared, 7),
        Fit("logarithm: LOG_TAIL_F64", log_ratio_second_tail, near_zero, s_squared, 7),
        Fit("trigonometric: SINE", sine_tail, near_zero, (Decimal(PI) / 4) ** 2, 6),
        Fit("trigonometric: COSINE", cosine_tail, near_zero, (Decimal(PI) / 4) ** 2, 6),
        Fit("inverse_trigonometric: ARCTANGENT", arctangent_tail, near_zero, (root - 1) ** 2, 11),
        Fit("saturating: ERF f32", erfc_logarithm, near_zero, Decimal("3.93"), 10),
        Fit("saturating: ERF f64", erfc_logarithm, near_zero, Decimal(6), 32),
    ]


def main() -> None:
    getcontext().prec = DIGITS
    for fit in fits():
        coefficients = interpolate(fit)
        print(f"{fit.name}: error {worst_error(fit, coefficients):.1e}")
        for coefficient in coefficients:
            print(f"    {float(coefficient)!r},")


if __name__ == "__main__":
    main()
