"""Removes arithmetic that changes no bit: x - 0, x * 1, x / 1, x^1, --x, and the like; a square becomes a product.

x + 0.0 is not among them: it makes +0 of -0. Neither is x * 0, for x may be infinite.
"""

from __future__ import annotations

import math

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import adds_no_axes, is_made_by, number, operand, uniform
from glowstone.ops import Abs, Add, And, Div, Maximum, Minimum, Mul, Neg, Not, Or, Pow, Relu, Sub, Where, Xor
from glowstone.ops.constant import scalar
from glowstone.types import ElementType

HALF = 0.5
"""The mantissa of every power of two."""
LARGEST_EXPONENT = 100
"""Powers of two and their reciprocals up to this exponent are normal numbers."""
LARGEST_EXPONENTS = {ElementType.F16: 10}
"""The same for the types that have a smaller range."""


def simplify_arithmetic(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(
        graph,
        (
            drop_neutral_right,
            drop_neutral_either,
            drop_involution,
            drop_idempotent,
            multiply_square,
            multiply_by_reciprocal,
            merge_signs,
            choose_branch,
        ),
    )


def keeps_shape(x: Value, other: Value, result: Value) -> bool:
    """Whether x has the result's type at every shape: `other` is a single element, or nothing can change."""
    if x.type != result.type or other.dynamic:
        return False
    return not x.dynamic or all(extent == 1 for extent in other.shape)


@rewrite(Sub, Div, Pow)
def drop_neutral_right(builder: Builder, node: Node) -> Value | None:
    x, other = node.operands
    assert x is not None
    assert other is not None
    found = uniform(other)
    neutral = 0.0 if isinstance(node.operator, Sub) else 1.0
    if found != neutral or math.copysign(1.0, found) < 0 or not keeps_shape(x, other, node.result):
        return None
    return x


@rewrite(Add, Mul, And, Or, Xor)
def drop_neutral_either(builder: Builder, node: Node) -> Value | None:
    """x * 1, x + (-0.0) or an integer x + 0, and the neutral truth value."""
    neutral = 1.0 if isinstance(node.operator, Mul | And) else 0.0
    for x, other in (node.operands, node.operands[::-1]):
        assert x is not None
        assert other is not None
        found = uniform(other)
        if found != neutral or not keeps_shape(x, other, node.result):
            continue
        if isinstance(node.operator, Add) and x.element.is_float and math.copysign(1.0, found) > 0:
            continue
        return x
    return None


@rewrite(Neg, Not)
def drop_involution(builder: Builder, node: Node) -> Value | None:
    (inner,) = node.operands
    return operand(inner) if is_made_by(inner, type(node.operator)) else None


@rewrite(Abs, Relu)
def drop_idempotent(builder: Builder, node: Node) -> Value | None:
    """Twice is as good as once; and the sign under a magnitude does not matter."""
    (inner,) = node.operands
    if is_made_by(inner, type(node.operator)):
        return inner
    if isinstance(node.operator, Abs) and is_made_by(inner, Neg):
        return builder.emit(node.operator, operand(inner))
    return None


@rewrite(Pow)
def multiply_square(builder: Builder, node: Node) -> Value | None:
    """x^2, correctly rounded either way."""
    x, exponent = node.operands
    assert x is not None
    assert exponent is not None
    if not x.element.is_float or uniform(exponent) != 2.0 or not keeps_shape(x, exponent, node.result):
        return None
    return builder.emit(Mul(), x, x)


@rewrite(Div)
def multiply_by_reciprocal(builder: Builder, node: Node) -> Value | None:
    """x / c for a power of two: its reciprocal is exact."""
    x, divisor = node.operands
    assert x is not None
    assert divisor is not None
    found = number(divisor)
    if not x.element.is_float or found is None or not adds_no_axes(divisor, x):
        return None
    mantissa, exponent = math.frexp(found)
    if abs(mantissa) != HALF or abs(exponent) > LARGEST_EXPONENTS.get(x.element, LARGEST_EXPONENT):
        return None
    return builder.emit(Mul(), x, scalar(builder, 1 / found, x.element))


@rewrite(Add, Sub)
def merge_signs(builder: Builder, node: Node) -> Value | None:
    """x + (-y) is x - y, and x - (-y) is x + y."""
    x, y = node.operands
    if is_made_by(y, Neg):
        return builder.emit(Sub() if isinstance(node.operator, Add) else Add(), x, operand(y))
    if isinstance(node.operator, Add) and is_made_by(x, Neg):
        return builder.emit(Sub(), y, operand(x))
    return None


@rewrite(Where, Maximum, Minimum)
def choose_branch(builder: Builder, node: Node) -> Value | None:
    """A choice that the condition makes for every element, or between a value and itself."""
    if not isinstance(node.operator, Where):
        x, y = node.operands
        return x if x is y else None
    condition, x, y = node.operands
    assert condition is not None
    assert x is not None
    assert y is not None
    found = uniform(condition)
    if found is None:
        return None
    chosen, other = (x, y) if found else (y, x)
    if keeps_shape(chosen, condition, node.result) and keeps_shape(chosen, other, node.result):
        return chosen
    return None
