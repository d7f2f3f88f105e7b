"""Sums, products and extrema of one element type, as reductions need them.

Sums of 16-bit floats are carried in float32 and rounded once at the end; integers wrap.
"""

from __future__ import annotations

import math

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.casts import HALVES, float_builder, register_type
from glowstone.backends.cpu.math.half import emit_round_to_half
from glowstone.backends.cpu.math.vector_builder import splat
from glowstone.types import ElementType


class Arithmetic:
    """Operations on `lanes` values of one element type in registers."""

    def __init__(self, emitter: Emitter, element: ElementType, lanes: int) -> None:
        self._emitter = emitter
        self._builder = emitter.builder
        self.element = element
        self.lanes = lanes

    def constant(self, value: float) -> Value:
        """The same number in every lane."""
        number = float(value) if self.element.is_float else int(value)
        return splat(register_type(self.element), self.lanes, number)

    def add(self, x: Value, y: Value) -> Value:
        return self._builder.fadd(x, y) if self.element.is_float else self._builder.add(x, y)

    def multiply(self, x: Value, y: Value) -> Value:
        return self._builder.fmul(x, y) if self.element.is_float else self._builder.mul(x, y)

    def multiply_add(self, x: Value, y: Value, z: Value) -> Value:
        """`x * y + z`."""
        if self.element.is_float:
            return self._emitter.multiply_add(x, y, z)
        return self._builder.add(self._builder.mul(x, y), z)

    def larger(self, x: Value, y: Value) -> Value:
        """NaN if either is NaN."""
        return self._extremum(">", "max", x, y)

    def smaller(self, x: Value, y: Value) -> Value:
        """NaN if either is NaN."""
        return self._extremum("<", "min", x, y)

    def _extremum(self, comparison: str, name: str, x: Value, y: Value) -> Value:
        builder = self._builder
        if not self.element.is_float:
            sign = "s" if self.element.is_signed else "u"
            return self._emitter.intrinsic(f"llvm.{sign}{name}", x.type, [x, y])
        chosen = builder.select(builder.fcmp_ordered(comparison, x, y), x, y)
        return builder.select(builder.fcmp_unordered("uno", x, x), x, chosen)

    def rounded(self, x: Value) -> Value:
        """A result as the element type holds it."""
        if self.element in HALVES:
            return emit_round_to_half(float_builder(self._emitter, self.element, self.lanes), x, self.element)
        return x

    def lowest(self) -> Value:
        """No number is smaller."""
        return self.constant(-math.inf if self.element.is_float else self.element.limits[0])

    def highest(self) -> Value:
        """No number is larger."""
        return self.constant(math.inf if self.element.is_float else self.element.limits[1])
