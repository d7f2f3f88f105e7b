"""The orders that selections go by: numbers as usual, NaN at the end that is looked for."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import Value
from glowstone.types import ElementType


class Order:
    """Comparisons of values of one element type in register form, an i1 per lane."""

    def __init__(self, emitter: Emitter, element: ElementType) -> None:
        self._builder = emitter.builder
        self._element = element

    def is_above(self, x: Value, y: Value) -> Value:
        """x > y, where NaN is above every number and not above NaN."""
        return self._precedes(">", x, y)

    def is_below(self, x: Value, y: Value) -> Value:
        """x < y, where NaN is below every number and not below NaN."""
        return self._precedes("<", x, y)

    def _precedes(self, comparison: str, x: Value, y: Value) -> Value:
        builder = self._builder
        if self._element.is_float:
            precedes_or_nan = builder.fcmp_unordered(comparison, x, y)
            return builder.and_(precedes_or_nan, builder.fcmp_ordered("ord", y, y))
        return (builder.icmp_signed if self._element.is_signed else builder.icmp_unsigned)(comparison, x, y)

    def is_equal(self, x: Value, y: Value) -> Value:
        """x == y; NaN equals NaN."""
        builder = self._builder
        if not self._element.is_float:
            return builder.icmp_signed("==", x, y)
        both_nan = builder.and_(builder.fcmp_unordered("uno", x, x), builder.fcmp_unordered("uno", y, y))
        return builder.or_(builder.fcmp_ordered("==", x, y), both_nan)
