"""Recovers activation functions from the formulas that exporters write: Sigmoid, Swish, HardSigmoid, HardSwish,
Softplus, Mish, Gelu by erf and by tanh, LeakyRelu.

Products may be in any order and nested in any way, constants may be scalars of any rank, powers may be products, and
divisions by numbers may be multiplications.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import (
    adds_no_axes,
    is_close,
    is_made_by,
    monomial,
    multiple,
    number,
    operand,
    product,
    shifted,
    with_number,
)
from glowstone.ops import (
    Add,
    Clip,
    Div,
    Erf,
    Exp,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Log,
    Maximum,
    Mish,
    Mul,
    Neg,
    Reciprocal,
    Sigmoid,
    Softplus,
    Sub,
    Swish,
    Tanh,
)

CUBIC = 0.044715
"""Of the approximation of Gelu by tanh."""
SIXTH = 1 / 6


def recover_activations(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(
        graph,
        (
            recover_sigmoid,
            recover_softplus,
            recover_leaky_relu,
            recover_hard_sigmoid,
            recover_swish_of_quotient,
            recover_gated,
        ),
    )


@rewrite(Reciprocal, Div)
def recover_sigmoid(builder: Builder, node: Node) -> Value | None:
    """1 / (1 + exp(-x))."""
    if isinstance(node.operator, Div) and number(node.operands[0]) != 1.0:
        return None
    x = _of_logistic(node.operands[-1])
    return builder.emit(Sigmoid(), x) if x is not None and x.type == node.result.type else None


@rewrite(Div)
def recover_swish_of_quotient(builder: Builder, node: Node) -> Value | None:
    """x / (1 + exp(-x))."""
    x = node.operands[0]
    return builder.emit(Swish(), x) if x is not None and x is _of_logistic(node.operands[1]) else None


def _of_logistic(value: Value | None) -> Value | None:
    """x where the value is 1 + exp(-x)."""
    for power, one in with_number(value, Add):
        negated = operand(power)
        if one == 1.0 and is_made_by(power, Exp) and is_made_by(negated, Neg):
            return operand(negated)
    return None


@rewrite(Log)
def recover_softplus(builder: Builder, node: Node) -> Value | None:
    """log(exp(x) + 1)."""
    for power, one in with_number(node.operands[0], Add):
        if one == 1.0 and is_made_by(power, Exp):
            return builder.emit(Softplus(), operand(power))
    return None


@rewrite(Maximum)
def recover_leaky_relu(builder: Builder, node: Node) -> Value | None:
    """The larger of x and a x, for a from 0 to 1."""
    for x, other in (node.operands, node.operands[::-1]):
        if x is None or other is None or not x.element.is_float or not is_made_by(other, Mul, Div):
            continue
        slope = multiple(other, x)
        if slope is not None and 0 <= slope <= 1:
            return builder.emit(LeakyRelu(slope), x)
    return None


@rewrite(Clip, Mul, Div)
def recover_hard_sigmoid(builder: Builder, node: Node) -> Value | None:
    """x a + b limited to [0, 1], or x + b limited to [0, c] and divided by c."""
    if not node.result.element.is_float:
        return None
    found = product(node.result) if not isinstance(node.operator, Clip) else None
    clip = found.values[0] if found is not None and len(found.values) == 1 else node.result
    factor = found.multiplier if found is not None else 1.0
    line = _limited_line(clip, factor)
    if line is None or clip.type != node.result.type:
        return None
    x, slope, offset = line
    return builder.emit(HardSigmoid(slope, offset), x)


def _limited_line(value: Value, factor: float) -> tuple[Value, float, float] | None:
    """(x, slope, offset) where value times factor is x * slope + offset limited to [0, 1]."""
    if value.node is None or not isinstance(value.operator, Clip):
        return None
    line, low, high = (*value.node.operands, None, None)[:3]
    top = number(high)
    if line is None or number(low) != 0.0 or top is None or top <= 0 or not is_close(top * factor, 1.0):
        return None
    offset = shifted(line)
    if offset is None:
        return None
    inner, constant = offset
    scaled = _scaled(inner)
    return scaled[0], scaled[1] * factor, constant * factor


def _scaled(value: Value) -> tuple[Value, float]:
    """(x, factor) where the value is x times a number."""
    found = product(value)
    if len(found.values) == 1:
        return found.values[0], found.multiplier
    return value, 1.0


@rewrite(Mul, Div)
def recover_gated(builder: Builder, node: Node) -> Value | None:
    """x times a function of x: Swish, HardSwish, Mish, Gelu."""
    if not node.result.element.is_float:
        return None
    for gate in product(node.result).values:
        for x, factor, made in _gates(gate):
            found = product(node.result, (x, gate))
            fits = len(found.values) == 2 and set(found.values) == {x, gate} and is_close(found.multiplier, factor)
            if fits and x.type == node.result.type:
                return builder.emit(made, x)
    return None


Activation = Swish | HardSwish | Mish | Gelu


def _gates(gate: Value) -> Iterator[tuple[Value, float, Activation]]:
    """What x, multiplied with the gate and a number, makes which activation of x."""
    inner = operand(gate)
    if inner is None:
        return
    if is_made_by(gate, Sigmoid):
        x, alpha = _scaled(inner)
        yield inner, 1.0, Swish()
        if x is not inner:
            yield x, 1.0, Swish(alpha)
    elif isinstance(gate.operator, HardSigmoid):
        if is_close(gate.operator.alpha, SIXTH) and is_close(gate.operator.beta, 0.5):
            yield inner, 1.0, HardSwish()
    elif is_made_by(gate, Clip):
        yield from _hard_gates(gate)
    elif is_made_by(gate, Tanh) and is_made_by(inner, Softplus):
        x_of_softplus = operand(inner)
        assert x_of_softplus is not None
        yield x_of_softplus, 1.0, Mish()
    elif is_made_by(gate, Add, Sub):
        yield from _gelu_gates(gate)


def _hard_gates(gate: Value) -> Iterator[tuple[Value, float, Activation]]:
    """x + 3 limited to [0, 6]; the factor is then 1 / 6."""
    line = _limited_line(gate, SIXTH)
    if line is not None and is_close(line[1], SIXTH) and is_close(line[2], 0.5):
        yield line[0], SIXTH, HardSwish()


def _gelu_gates(gate: Value) -> Iterator[tuple[Value, float, Activation]]:
    """1 + erf(x / sqrt(2)), and 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)), or multiples; of one the factor is 1 / 2.

    Erf is odd, so 1 - erf(-x / sqrt(2)) is the first as well.
    """
    for curve, slope, offset in _lines(gate):
        inner = operand(curve)
        if inner is None or offset <= 0 or not is_close(abs(slope), offset):
            continue
        if is_made_by(curve, Erf):
            x, factor = _scaled(inner)
            if is_close(math.copysign(factor, factor * slope), math.sqrt(0.5)):
                yield x, 0.5 / offset, Gelu()
        elif is_made_by(curve, Tanh) and slope > 0:
            for x in _of_cubic(inner):
                yield x, 0.5 / offset, Gelu(approximate=True)


def _lines(value: Value) -> Iterator[tuple[Value, float, float]]:
    """(x, slope, offset) where the value is x * slope + offset, or offset - x * (-slope)."""
    for scaled, offset in with_number(value, Add):
        x, slope = _scaled(scaled)
        yield x, slope, offset
    first, second = operand(value, 0), operand(value, 1)
    found = number(first)
    if not is_made_by(value, Sub) or first is None or second is None or found is None:
        return
    if adds_no_axes(first, second):
        x, slope = _scaled(second)
        yield x, -slope, found


def _of_cubic(value: Value) -> Iterator[Value]:
    """x where the value is sqrt(2 / pi) (x + 0.044715 x^3), or the same with x taken out of the sum."""
    found = product(value)
    if not is_close(found.multiplier, math.sqrt(2 / math.pi)):
        return
    if len(found.values) == 1:
        (total,) = found.values
        for x, cube in _summands(total):
            if _is_monomial(cube, x, 3):
                yield x
    elif len(found.values) == 2:
        for x, total in (found.values, found.values[::-1]):
            for square, one in with_number(total, Add):
                if one == 1.0 and _is_monomial(square, x, 2):
                    yield x


def _summands(total: Value) -> Iterator[tuple[Value, Value]]:
    if total.node is not None and isinstance(total.operator, Add):
        first, second = total.node.operands
        assert first is not None
        assert second is not None
        yield first, second
        yield second, first


def _is_monomial(value: Value, x: Value, degree: int) -> bool:
    found = monomial(value, x)
    return found is not None and found[1] == degree and is_close(found[0], CUBIC)
