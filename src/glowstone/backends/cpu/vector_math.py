"""Scalar expressions as vector code.

In: an expression and the register values of its inputs. Out: the register value of its result. The meaning is that of
`glowstone.scalar.evaluate`; the forms of values in registers stand in `math.casts`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from glowstone.backends.cpu.ir_types import I1, Value, lanes_of, suffix, vector
from glowstone.backends.cpu.math.casts import (
    HALVES,
    emit_cast,
    emit_from_storage,
    emit_narrow_cast,
    emit_to_storage,
    float_builder,
    register_type,
    storage_type,
)
from glowstone.backends.cpu.math.exponential import emit_exp, emit_expm1, emit_sigmoid
from glowstone.backends.cpu.math.half import emit_round_to_half
from glowstone.backends.cpu.math.hyperbolic import emit_acosh, emit_asinh, emit_atanh, emit_cosh, emit_sinh
from glowstone.backends.cpu.math.integers import emit_divide, emit_integer_power, emit_modulus, emit_shift
from glowstone.backends.cpu.math.inverse_trigonometric import emit_acos, emit_asin, emit_atan
from glowstone.backends.cpu.math.logarithm import emit_log, emit_log1p
from glowstone.backends.cpu.math.power import emit_constant_power, emit_pow
from glowstone.backends.cpu.math.remainder import emit_remainder
from glowstone.backends.cpu.math.saturating import emit_erf, emit_tanh
from glowstone.backends.cpu.math.trigonometric import emit_cos, emit_sin, emit_tan
from glowstone.backends.cpu.math.vector_builder import VectorBuilder, call_intrinsic, splat
from glowstone.errors import UnsupportedError
from glowstone.scalar import Apply, Expression, Input, Literal, literal_array, walk
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter


def _emit_in_float64(function: Callable[[VectorBuilder, Value], Value], math: VectorBuilder, x: Value) -> Value:
    if math.element is ElementType.F64:
        return function(math, x)
    wide = math.with_element(ElementType.F64)
    return wide.ir.fptrunc(function(wide, wide.ir.fpext(x, wide.type)), math.type)


_BINARY_FLOAT: dict[str, Callable[[VectorBuilder, Value, Value], Value]] = {
    "add": lambda math, x, y: math.ir.fadd(x, y),
    "sub": lambda math, x, y: math.ir.fsub(x, y),
    "mul": lambda math, x, y: math.ir.fmul(x, y),
    "div": lambda math, x, y: math.ir.fdiv(x, y),
    "pow": emit_pow,
    "rem": emit_remainder,
}
_IN_FLOAT64: dict[str, Callable[[VectorBuilder, Value], Value]] = {
    "sin": emit_sin,
    "cos": emit_cos,
    "tan": emit_tan,
    "asin": emit_asin,
    "acos": emit_acos,
    "atan": emit_atan,
    "sinh": emit_sinh,
    "cosh": emit_cosh,
    "asinh": emit_asinh,
    "acosh": emit_acosh,
    "atanh": emit_atanh,
}
"""Functions that have code for float64 only: smaller floats are widened."""
_ROUNDING_UNARY_FLOAT: dict[str, Callable[[VectorBuilder, Value], Value]] = {
    "sqrt": lambda math, x: math.unary("sqrt", x),
    "exp": emit_exp,
    "log": emit_log,
    "tanh": emit_tanh,
    "sigmoid": emit_sigmoid,
    "erf": emit_erf,
    "expm1": emit_expm1,
    "log1p": emit_log1p,
    **{name: functools.partial(_emit_in_float64, function) for name, function in _IN_FLOAT64.items()},
}
_EXACT_UNARY_FLOAT: dict[str, Callable[[VectorBuilder, Value], Value]] = {
    "neg": lambda math, x: math.ir.fneg(x),
    "abs": lambda math, x: math.unary("fabs", x),
    "floor": lambda math, x: math.unary("floor", x),
    "ceil": lambda math, x: math.unary("ceil", x),
    "round": lambda math, x: math.unary("roundeven", x),
}
_COMPARISONS = {"less": "<", "less_equal": "<=", "equal": "=="}
_IDENTITIES_ON_INTEGERS = ("floor", "ceil", "round")
# A sum of booleans is their union and a product their intersection, as in NumPy
_BOOLEAN_NAMES = {"add": "or", "max": "or", "mul": "and", "min": "and"}


def emit_expression(emitter: Emitter, expression: Expression, inputs: Sequence[Value], lanes: int) -> Value:
    """The value of the expression; `inputs[i]` is input i, a vector of `lanes` (a scalar where that is 1).

    Raises:
        UnsupportedError: a function has no meaning for the element type it is applied to.
    """
    return emit_expressions(emitter, [expression], inputs, lanes)[0]


def emit_expressions(
    emitter: Emitter, expressions: Sequence[Expression], inputs: Sequence[Value] | Mapping[int, Value], lanes: int
) -> list[Value]:
    """The values of several expressions, which share what they have in common."""
    values: dict[int, Value] = {}
    for expression in expressions:
        for node in walk(expression):
            if id(node) not in values:
                values[id(node)] = _emit_node(emitter, node, inputs, values, lanes)
    return [values[id(expression)] for expression in expressions]


def _emit_node(
    emitter: Emitter,
    node: Expression,
    inputs: Sequence[Value] | Mapping[int, Value],
    values: Mapping[int, Value],
    lanes: int,
) -> Value:
    if isinstance(node, Input):
        return inputs[node.index]
    if isinstance(node, Literal):
        return _emit_literal(emitter, node, lanes)
    assert isinstance(node, Apply)
    arguments = [values[id(argument)] for argument in node.arguments]
    return _emit_function(emitter, node, arguments, lanes)


def _emit_literal(emitter: Emitter, literal: Literal, lanes: int) -> Value:
    if literal.element.is_narrow:
        code = literal_array(literal).view(np.uint8)
        return splat(register_type(literal.element), lanes, int(code))
    number = splat(register_type(literal.element), lanes, literal.value)
    if literal.element in HALVES:
        return emit_round_to_half(float_builder(emitter, literal.element, lanes), number, literal.element)
    return number


def _emit_function(emitter: Emitter, node: Apply, arguments: Sequence[Value], lanes: int) -> Value:
    element = node.arguments[0].element
    if node.function == "cast":
        return emit_cast(emitter, arguments[0], element, node.element, lanes)
    if node.function == "cast_overflowing":
        return emit_narrow_cast(emitter, arguments[0], element, node.element, lanes, saturates=False)
    if node.function == "reinterpret":
        return _emit_reinterpret(emitter, arguments[0], element, node.element, lanes)
    if node.function == "select":
        return emitter.builder.select(*arguments)
    if element is ElementType.BOOL:
        return _emit_boolean(emitter, node.function, arguments)
    if element.is_float:
        return _emit_float(emitter, node, arguments, lanes)
    return _emit_integer(emitter, node.function, element, arguments, lanes)


def _emit_reinterpret(emitter: Emitter, x: Value, source: ElementType, target: ElementType, lanes: int) -> Value:
    """By way of the form in memory, where the bits are the value's own."""
    stored = emit_to_storage(emitter, x, source, lanes)
    bits = emitter.builder.bitcast(stored, vector(storage_type(target), lanes))
    return emit_from_storage(emitter, bits, target, lanes)


def _emit_float(emitter: Emitter, node: Apply, arguments: Sequence[Value], lanes: int) -> Value:
    function, element = node.function, node.arguments[0].element
    math = float_builder(emitter, element, lanes)
    if function in _COMPARISONS:
        return emitter.builder.fcmp_ordered(_COMPARISONS[function], *arguments)
    if function in ("min", "max"):
        return _extremum(math, node, arguments)
    if function in _EXACT_UNARY_FLOAT:
        return _EXACT_UNARY_FLOAT[function](math, arguments[0])
    if function in _ROUNDING_UNARY_FLOAT:
        result = _ROUNDING_UNARY_FLOAT[function](math, arguments[0])
    elif function in _BINARY_FLOAT:
        result = _emit_binary_float(math, node, arguments)
    else:
        raise _unsupported(function, element)
    return emit_round_to_half(math, result, element) if element in HALVES else result


def _emit_binary_float(math: VectorBuilder, node: Apply, arguments: Sequence[Value]) -> Value:
    exponent = node.arguments[1]
    if node.function == "pow" and isinstance(exponent, Literal):
        special = emit_constant_power(math, arguments[0], float(exponent.value))
        if special is not None:
            return special
    return _BINARY_FLOAT[node.function](math, *arguments)


def _extremum(math: VectorBuilder, node: Apply, arguments: Sequence[Value]) -> Value:
    """The smaller or larger; NaN if either is NaN. One comparison is enough where one is a number for sure."""
    comparison = "<" if node.function == "min" else ">"
    x, y = arguments
    if isinstance(node.arguments[0], Literal) and node.arguments[0].value == node.arguments[0].value:
        x, y = y, x
    elif not (isinstance(node.arguments[1], Literal) and node.arguments[1].value == node.arguments[1].value):
        chosen = math.select(math.ir.fcmp_ordered(comparison, x, y), x, y)
        return math.select(math.is_nan(x), x, chosen)
    return math.select(math.ir.fcmp_ordered(comparison, y, x), y, x)


def _emit_boolean(emitter: Emitter, function: str, arguments: Sequence[Value]) -> Value:
    builder = emitter.builder
    function = _BOOLEAN_NAMES.get(function, function)
    bitwise = {"and": builder.and_, "or": builder.or_, "xor": builder.xor, "not": builder.not_}
    if function in bitwise:
        return bitwise[function](*arguments)
    if function in _COMPARISONS:
        return builder.icmp_unsigned(_COMPARISONS[function], *arguments)
    raise _unsupported(function, ElementType.BOOL)


def _emit_integer(
    emitter: Emitter, function: str, element: ElementType, arguments: Sequence[Value], lanes: int
) -> Value:
    builder = emitter.builder
    simple = {
        "add": builder.add,
        "sub": builder.sub,
        "mul": builder.mul,
        "neg": builder.neg,
        "and": builder.and_,
        "or": builder.or_,
        "xor": builder.xor,
        "not": builder.not_,
    }
    if function in simple:
        return simple[function](*arguments)
    if function in _IDENTITIES_ON_INTEGERS:
        return arguments[0]
    if function in _COMPARISONS:
        compare = builder.icmp_signed if element.is_signed else builder.icmp_unsigned
        return compare(_COMPARISONS[function], *arguments)
    if function in ("min", "max"):
        return emitter.intrinsic(f"llvm.{'s' if element.is_signed else 'u'}{function}", arguments[0].type, arguments)
    if function == "abs":
        return _absolute(emitter, arguments[0]) if element.is_signed else arguments[0]
    if function == "div":
        return emit_divide(emitter, arguments[0], arguments[1], element.is_signed)
    if function == "pow":
        return emit_integer_power(emitter, arguments[0], arguments[1], element.is_signed)
    if function == "rem":
        return emit_modulus(emitter, arguments[0], arguments[1], element.is_signed)
    if function in ("shift_left", "shift_right"):
        return emit_shift(emitter, function, arguments[0], arguments[1], element.is_signed)
    return _emit_through_f64(emitter, function, element, arguments[0], lanes)


def _absolute(emitter: Emitter, x: Value) -> Value:
    """Magnitude; the lowest number wraps to itself."""
    return call_intrinsic(emitter.builder, f"llvm.abs.{suffix(x.type)}", x.type, [x, I1(0)])


def _emit_through_f64(emitter: Emitter, function: str, element: ElementType, x: Value, lanes: int) -> Value:
    """sqrt, exp ... of an integer: computed in float64, truncated."""
    if function not in _ROUNDING_UNARY_FLOAT:
        raise _unsupported(function, element)
    number = emit_cast(emitter, x, element, ElementType.F64, lanes)
    result = _ROUNDING_UNARY_FLOAT[function](float_builder(emitter, ElementType.F64, lanes_of(number.type)), number)
    return emit_cast(emitter, result, ElementType.F64, element, lanes)


def _unsupported(function: str, element: ElementType) -> UnsupportedError:
    return UnsupportedError(f"{function} has no meaning for {element}")
