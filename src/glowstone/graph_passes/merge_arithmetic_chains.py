"""Joins arithmetic with constants: (x a) b, (x + a) + b, (x + a) + (y + b), ((x a) + b) c; a quotient is a product.

Rounding differs from the specification's order, so strict numerics leave this out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import both_orders, uniform
from glowstone.graph_passes.simplify_arithmetic import keeps_shape
from glowstone.ops import Add, Div, Mul, Sub
from glowstone.ops.constant import constant, constant_array

Array = np.ndarray[Any, np.dtype[Any]]


def merge_arithmetic_chains(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(
        graph, (divide_by_multiplying, drop_zero, merge_factors, merge_summands, join_summands, multiply_out)
    )


@rewrite(Div)
def divide_by_multiplying(builder: Builder, node: Node) -> Value | None:
    """x / c, where no reciprocal is infinite or loses digits."""
    x, divisor = node.operands
    array = constant_array(divisor)
    if x is None or array is None or constant_array(x) is not None or not x.element.is_float or array.size == 0:
        return None
    wide = np.asarray(array, np.float64)
    with np.errstate(all="ignore"):
        inverse = 1 / wide
    smallest = float(np.finfo(np.float32).tiny) if x.element.size > 2 else 2.0**-14
    if not np.all(np.isfinite(inverse) & (np.abs(inverse) >= smallest) & (np.abs(inverse) <= 1 / smallest)):
        return None
    return builder.emit(Mul(), x, constant(builder, np.asarray(inverse, array.dtype)))


@rewrite(Add)
def drop_zero(builder: Builder, node: Node) -> Value | None:
    """x + 0.0, which differs from x in the sign of zero only."""
    for x, other in both_orders(node):
        if x.element.is_float and uniform(other) == 0.0 and keeps_shape(x, other, node.result):
            return x
    return None


@rewrite(Mul)
def merge_factors(builder: Builder, node: Node) -> Value | None:
    outer = _with_constant(node)
    inner = _inner(builder, outer, Mul)
    if outer is None or inner is None:
        return None
    return _emit(builder, Mul(), inner[0], inner[1] * outer[1], inner[1], outer[1])


@rewrite(Add, Sub)
def merge_summands(builder: Builder, node: Node) -> Value | None:
    outer = _with_constant(node)
    inner = _inner(builder, outer, Add) or _inner(builder, outer, Sub)
    if outer is None or inner is None:
        return None
    return _emit(builder, Add(), inner[0], inner[1] + outer[1], inner[1], outer[1])


@rewrite(Add)
def join_summands(builder: Builder, node: Node) -> Value | None:
    """(x + a) + (y + b) is (y + (a + b)) + x: the sums of two convolutions, of which the later takes in all."""
    x, y = node.operands
    first, second = _computed(builder, x, Add), _computed(builder, y, Add)
    if first is None or second is None or not first[0].type == second[0].type == node.result.type:
        return None
    total = _emit(builder, Add(), second[0], first[1] + second[1], first[1], second[1])
    return None if total is None else builder.emit(Add(), total, first[0])


@rewrite(Mul)
def multiply_out(builder: Builder, node: Node) -> Value | None:
    """((x a) + b) c is (x (a c)) + b c, which is one operation less."""
    outer = _with_constant(node)
    total = _inner(builder, outer, Add)
    scaled = _inner(builder, total, Mul)
    if outer is None or total is None or scaled is None:
        return None
    factor, offset = outer[1], total[1]
    product = _emit(builder, Mul(), scaled[0], scaled[1] * factor, scaled[1], factor)
    return None if product is None else _emit(builder, Add(), product, offset * factor, offset, factor)


def _with_constant(node: Node) -> tuple[Value, Array] | None:
    """(x, c) where the node is x and a constant of floats; for a difference x - c, -c."""
    pairs = [node.operands] if isinstance(node.operator, Sub) else [node.operands, node.operands[::-1]]
    for x, other in pairs:
        array = constant_array(other)
        if x is not None and array is not None and x.element.is_float and constant_array(x) is None:
            wide = np.asarray(array, np.float64)
            return x, -wide if isinstance(node.operator, Sub) else wide
    return None


def _inner(
    builder: Builder, outer: tuple[Value, Array] | None, kind: type[Add | Mul | Sub]
) -> tuple[Value, Array] | None:
    """The same of the node that computes the outer one's x, if nothing else reads that."""
    return None if outer is None else _computed(builder, outer[0], kind)


def _computed(builder: Builder, value: Value | None, kind: type[Add | Mul | Sub]) -> tuple[Value, Array] | None:
    """(x, c) of the node that computes a value, if nothing else reads that."""
    if (
        value is None
        or value.node is None
        or not isinstance(value.operator, kind)
        or not builder.graph.has_single_use(value)
    ):
        return None
    return _with_constant(value.node)


def _emit(builder: Builder, operator: Add | Mul, x: Value, numbers: Array, *parts: Array) -> Value | None:
    """The operator of x and numbers, unless these are more than the parts they are made of."""
    if numbers.size > max(part.size for part in parts):
        return None
    with np.errstate(all="ignore"):
        return builder.emit(operator, x, constant(builder, np.asarray(numbers, x.element.dtype)))


PATTERNS = (divide_by_multiplying, drop_zero, merge_factors, merge_summands, join_summands, multiply_out)
