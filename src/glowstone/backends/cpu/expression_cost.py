"""How long a scalar expression takes, in multiply-adds: for dividing work and estimating costs, never measured."""

from __future__ import annotations

from glowstone.scalar import Apply, Expression, walk

_OPERATIONS = {"exp": 16, "log": 20, "tanh": 24, "sigmoid": 24, "erf": 30, "pow": 120, "div": 6, "sqrt": 6} | {
    "expm1": 30,
    "log1p": 40,
    "rem": 60,
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), 80),
    **dict.fromkeys(("sinh", "cosh", "asinh", "acosh", "atanh"), 120),
}
FLOPS_PER_OPERATION = 2


def expression_flops(expression: Expression | None) -> int:
    """Floating-point operations per element, a multiply-add counting as two."""
    if expression is None:
        return 0
    functions = (node.function for node in walk(expression) if isinstance(node, Apply))
    return FLOPS_PER_OPERATION * sum(_OPERATIONS.get(function, 1) for function in functions)
