"""Cases of elementwise operators: shapes, broadcasting and every element type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from glowstone.graph import Operator, Sample
from glowstone.ops.element_sets import ALL
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]


def unary_samples(operator: Operator, low: float = -3.0, high: float = 3.0) -> list[Sample]:
    """Arrays of several shapes, and of every element type."""
    elements = operator.operands[0].elements or ALL
    main = main_element(elements)
    generator = np.random.default_rng(0)
    shapes: list[tuple[int, ...]] = [(), (1,), (17,), (2, 3, 5), (0, 4)]
    plain = [Sample(operator, (_random(generator, shape, main, low, high),)) for shape in shapes]
    return plain + typed_samples(operator, elements - {main}, low, high)


def binary_samples(operator: Operator, low: float = -3.0, high: float = 3.0) -> list[Sample]:
    """Equal shapes, every way of broadcasting, and every element type."""
    elements = operator.operands[0].elements or ALL
    main = main_element(elements)
    generator = np.random.default_rng(1)
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((), ()),
        ((19,), (19,)),
        ((2, 3, 4), (3, 1)),
        ((1, 5), (4, 1)),
        ((0, 3), (3,)),
        ((2, 1, 3), ()),
    ]
    plain = [Sample(operator, tuple(_random(generator, shape, main, low, high) for shape in pair)) for pair in pairs]
    return plain + typed_samples(operator, elements - {main}, low, high)


def typed_samples(
    operator: Operator, elements: Iterable[ElementType], low: float = -3.0, high: float = 3.0
) -> list[Sample]:
    """One sample of each element type, of equal shapes; what rounding may do is in its tolerance."""
    generator = np.random.default_rng(2)
    shape = (3, 7)
    return [
        Sample(
            operator,
            tuple(_random(generator, shape, element, low, high) for _ in operator.operands),
            HALF_TOLERANCES.get(element, Sample.tolerance),
        )
        for element in sorted(elements, key=str)
    ]


HALF_TOLERANCES = {ElementType.F16: 2.0**-10, ElementType.BF16: 2.0**-7}
"""One unit in the last place."""
INTEGER_RANGE = 3
"""Integers of samples reach this many times further than floats."""


def main_element(elements: frozenset[ElementType]) -> ElementType:
    """float32, or else the first by name."""
    return ElementType.F32 if ElementType.F32 in elements else min(elements, key=str)


def _random(
    generator: np.random.Generator, shape: tuple[int, ...], element: ElementType, low: float, high: float
) -> Array:
    values = generator.uniform(low, high, shape)
    if element is ElementType.BOOL:
        return np.asarray(values > 0)
    if element.wide.is_integer:
        values = np.rint(INTEGER_RANGE * (values if element.is_signed else np.abs(values)))
    return np.asarray(values).astype(element.dtype)
