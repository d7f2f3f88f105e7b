"""What patterns ask of values: constants of one number, products and sums in any order, powers.

Nothing here rests on an extent of a dynamic value: a number that stands beside x has extents of 1 only and no more axes
than x, so it never changes x's shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from glowstone.graph import Node, Operator, Value
from glowstone.ops import (
    Add,
    Constant,
    Conv,
    ConvTranspose,
    Div,
    Elementwise,
    Gemm,
    Identity,
    MatMul,
    Mul,
    Neg,
    Pow,
    Reciprocal,
    Reduction,
    Sqrt,
    Sub,
)
from glowstone.ops.constant import constant_array

CLOSE = 1e-4
"""How far, relatively, exporters round the constants of formulas."""
TAKES_IN = (Conv, ConvTranspose, MatMul, Gemm, Reduction, Elementwise)
"""What an elementwise node behind it becomes part of."""
MOST_FACTORS = 8
MOST_COMPARED = 2**16
"""Elements that `uniform` looks at; weights are larger and are never uniform."""


def operand(value: Value | None, index: int = 0) -> Value | None:
    """An operand of the node that computes the value; None where there is none."""
    if value is None or value.node is None or index >= len(value.node.operands):
        return None
    return value.node.operands[index]


def is_made_by(value: Value | None, *kinds: type[Operator]) -> bool:
    """Whether an operator of these classes computes the value."""
    return value is not None and isinstance(value.operator, kinds)


def number(value: Value | None) -> float | None:
    """The number of a constant of one element, of any rank."""
    array = constant_array(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def uniform(value: Value | None) -> float | None:
    """The number that every element of a constant is."""
    if value is None or not isinstance(value.operator, Constant):
        return None
    tensor = value.operator.tensor
    array = tensor.array
    if array.size == 0 or (array.size > MOST_COMPARED and not tensor.is_splat):
        return None
    first = array.flat[0]
    if tensor.is_splat:
        return float(first)
    return float(first) if bool((array == first).all()) else None


def is_close(found: float | None, wanted: float) -> bool:
    """Whether a number is the one of a formula, as exporters round it."""
    return found is not None and abs(found - wanted) <= CLOSE * abs(wanted)


def adds_no_axes(other: Value, x: Value) -> bool:
    """Whether a constant of one element has no more axes than x."""
    return other.rank <= x.rank


def both_orders(node: Node) -> Iterator[tuple[Value, Value]]:
    """The two operands of a node, first as they are, then swapped."""
    first, second = node.operands
    assert first is not None
    assert second is not None
    yield first, second
    yield second, first


def with_number(value: Value | None, kind: type[Operator]) -> Iterator[tuple[Value, float]]:
    """(x, number) where the value is a commutative operator of x and a number that adds no axes."""
    if value is None or value.node is None or not isinstance(value.operator, kind):
        return
    for x, other in both_orders(value.node):
        found = number(other)
        if found is not None and adds_no_axes(other, x):
            yield x, found


def shifted(value: Value | None) -> tuple[Value, float] | None:
    """(x, offset) where the value is x + offset or x - (-offset)."""
    for pair in with_number(value, Add):
        return pair
    if is_made_by(value, Sub):
        x, other = operand(value, 0), operand(value, 1)
        found = number(other)
        if x is not None and other is not None and found is not None and adds_no_axes(other, x):
            return x, -found
    return None


@dataclass(frozen=True)
class Product:
    """A number times values, each to the power 1."""

    multiplier: float
    values: tuple[Value, ...]


def product(value: Value, stop: Sequence[Value] = ()) -> Product:
    """The value as a product: products, powers and quotients by numbers taken apart, down to the values of `stop`.

    A value that is none of these is the product of itself.
    """
    multiplier = 1.0
    values: list[Value] = []
    pending = [value]
    while pending:
        current = pending.pop(0)
        apart = None if current in stop or len(values) + len(pending) >= MOST_FACTORS else _apart(current)
        if apart is None:
            values.append(current)
            continue
        multiplier *= apart.multiplier
        pending = [*apart.values, *pending]
    return Product(multiplier, tuple(values))


def _apart(value: Value) -> Product | None:
    """One step of `product`."""
    for x, factor in with_number(value, Mul):
        return Product(factor, (x,))
    first, second = operand(value, 0), operand(value, 1)
    if first is None:
        return None
    if is_made_by(value, Neg):
        return Product(-1.0, (first,))
    if is_made_by(value, Identity):
        return Product(1.0, (first,))
    if second is None:
        return None
    if is_made_by(value, Mul) and first.rank == second.rank:
        return Product(1.0, (first, second))
    found = number(second)
    if found is None or not adds_no_axes(second, first):
        return None
    if is_made_by(value, Div) and found and value.element.is_float:
        return Product(1 / found, (first,))
    if is_made_by(value, Pow) and found in (2.0, 3.0):
        return Product(1.0, (first,) * int(found))
    return None


def multiple(value: Value, of: Value) -> float | None:
    """The number where the value is a number times `of`."""
    found = product(value, (of,))
    return found.multiplier if found.values == (of,) else None


def monomial(value: Value, of: Value) -> tuple[float, int] | None:
    """(number, degree) where the value is a number times a power of `of`."""
    found = product(value, (of,))
    if any(factor is not of for factor in found.values):
        return None
    return found.multiplier, len(found.values)


def is_square(value: Value, of: Value) -> bool:
    """Whether the value is `of` squared, as a product or a power."""
    return monomial(value, of) == (1.0, 2)


def inverse_root_of(value: Value | None) -> Value | None:
    """x where the value is 1 / sqrt(x): a reciprocal, a quotient or the power -1/2."""
    if is_made_by(value, Reciprocal):
        root = operand(value)
        return operand(root) if is_made_by(root, Sqrt) else None
    if is_made_by(value, Div) and number(operand(value, 0)) == 1.0:
        root, one = operand(value, 1), operand(value, 0)
        if is_made_by(root, Sqrt) and root is not None and one is not None and adds_no_axes(one, root):
            return operand(root)
    if is_made_by(value, Pow) and number(operand(value, 1)) == -0.5:
        x, exponent = operand(value, 0), operand(value, 1)
        return x if x is not None and exponent is not None and adds_no_axes(exponent, x) else None
    return None
