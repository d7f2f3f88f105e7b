"""The meaning of scalar expressions: evaluation over NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glowstone.scalar.expression import CASTS, Apply, Expression, Input, Literal, walk
from glowstone.scalar.narrow import narrow_float, narrow_integer, widened
from glowstone.types import NARROW_FLOATS, ElementType, is_float_dtype

Array = np.ndarray[Any, np.dtype[Any]]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _div(x: Array, y: Array) -> Array:
    if is_float_dtype(x.dtype):
        return np.asarray(np.divide(x, y))
    safe = np.where(y == 0, 1, y)
    quotient = np.floor_divide(x, safe)
    quotient = quotient + ((np.remainder(x, safe) != 0) & ((x < 0) != (safe < 0)))
    return np.asarray(np.where(y == 0, 0, quotient)).astype(x.dtype)


def _in_float64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: np.asarray(function(x.astype(np.float64))).astype(x.dtype)


def _pow(x: Array, y: Array) -> Array:
    if is_float_dtype(x.dtype):
        return np.asarray(np.power(x.astype(np.float64), y.astype(np.float64))).astype(x.dtype)
    is_negative = y < 0
    power = np.power(x, np.where(is_negative, np.zeros((), y.dtype), y))
    of_minus_one = np.where(y % 2 == 0, np.ones((), x.dtype), x)
    reciprocal = np.where((x == 1) | (x + 1 == 0), of_minus_one, np.zeros((), x.dtype))
    return np.where(is_negative, reciprocal, power)


def convert(x: Array, element: ElementType, saturates: bool = True) -> Array:
    """The `cast` function: float to integer truncates, saturates, and sends NaN to 0.

    Where it does not saturate, the `cast_overflowing` function. Narrow integers keep the lower bits in either.
    """
    source = ElementType.from_dtype(x.dtype)
    if source is element:
        return x
    if source.is_narrow:
        x = widened(x, source)
    if element.is_narrow:
        return _to_narrow(x, element, saturates)
    if element is ElementType.BOOL:
        return np.asarray(x != 0)
    if element.is_integer and is_float_dtype(x.dtype):
        lowest, highest = element.limits
        wide = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0)
        result = np.clip(wide, float(lowest), float(highest)).astype(element.dtype, casting="unsafe")
        result = np.where(wide >= float(highest), highest, result)
        return np.asarray(np.where(wide <= float(lowest), lowest, result)).astype(element.dtype)
    if element is ElementType.BF16:
        return _to_f32_odd(x).astype(element.dtype)
    return x.astype(element.dtype, casting="unsafe")


def _to_narrow(x: Array, element: ElementType, saturates: bool) -> Array:
    if element in NARROW_FLOATS:
        return narrow_float(_to_f32_odd(x), element, saturates)
    return narrow_integer(convert(x, ElementType.I32) if is_float_dtype(x.dtype) else x, element)


def _to_f32_odd(x: Array) -> Array:
    """As float32, rounded to odd: that keeps on which side of a tie x was, so rounding again is rounding once."""
    wide = x.astype(np.float64)
    nearest = wide.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint32)
    moves = (bits & 1 == 0) & (back != wide) & ~np.isnan(wide)
    step = np.where(np.abs(wide) < np.abs(back), -1, 1)
    return np.where(moves, bits + step, bits).astype(np.uint32).view(np.float32)


def literal_array(literal: Literal) -> Array:
    """A literal as an array of rank 0."""
    return convert(np.asarray(literal.value, literal.element.wide.dtype), literal.element)


def _sigmoid(x: Array) -> Array:
    """Of the form whose exponential does not overflow, so that results near 0 keep their digits."""
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1.0) / (1.0 + power)


def _reinterpret(x: Array, element: ElementType) -> Array:
    bits = np.asarray(x, order="C").view(f"u{element.size}")
    return bits != 0 if element is ElementType.BOOL else bits.view(element.dtype)


def _shift_left(x: Array, y: Array) -> Array:
    valid, count = _shift_count(x, y)
    return np.where(valid, np.left_shift(x, count), np.zeros((), x.dtype))


def _shift_right(x: Array, y: Array) -> Array:
    valid, count = _shift_count(x, y)
    only_sign = np.where(x < 0, np.full((), -1).astype(x.dtype), np.zeros((), x.dtype))
    return np.where(valid, np.right_shift(x, count), only_sign)


def _shift_count(x: Array, y: Array) -> tuple[Array, Array]:
    """(y is the number of a bit, y or else 0)."""
    valid = (y >= 0) & (y < 8 * x.dtype.itemsize)
    return valid, np.where(valid, y, np.zeros((), y.dtype))


_EVALUATE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _div,
    "pow": _pow,
    "min": np.minimum,
    "max": np.maximum,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": _in_float64(np.sqrt),
    "exp": _in_float64(np.exp),
    "log": _in_float64(np.log),
    "tanh": _in_float64(np.tanh),
    "sigmoid": _in_float64(_sigmoid),
    "erf": _in_float64(_erf),
    "expm1": _in_float64(np.expm1),
    "log1p": _in_float64(np.log1p),
    "sin": _in_float64(np.sin),
    "cos": _in_float64(np.cos),
    "tan": _in_float64(np.tan),
    "asin": _in_float64(np.arcsin),
    "acos": _in_float64(np.arccos),
    "atan": _in_float64(np.arctan),
    "sinh": _in_float64(np.sinh),
    "cosh": _in_float64(np.cosh),
    "asinh": _in_float64(np.arcsinh),
    "acosh": _in_float64(np.arccosh),
    "atanh": _in_float64(np.arctanh),
    "rem": np.fmod,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "select": np.where,
}


def evaluate(expression: Expression, arrays: Sequence[Array]) -> Array:
    """The value of the expression for each element; arrays broadcast together.

    Transcendental functions are computed in float64 and rounded once.
    """
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in walk(expression):
            if isinstance(node, Input):
                values[id(node)] = np.asarray(arrays[node.index])
            elif isinstance(node, Literal):
                values[id(node)] = literal_array(node)
            elif isinstance(node, Apply):
                arguments = [values[id(argument)] for argument in node.arguments]
                if node.function in CASTS:
                    values[id(node)] = convert(arguments[0], node.element, node.function == "cast")
                elif node.function == "reinterpret":
                    values[id(node)] = _reinterpret(arguments[0], node.element)
                else:
                    values[id(node)] = np.asarray(_EVALUATE[node.function](*arguments), dtype=node.element.dtype)
    return values[id(expression)]
