"""Arithmetic on vectors of one float type: the vocabulary in which the mathematical functions are written.

In: an llvmlite builder. Out: instructions in its block. Every value is a vector of `lanes` elements, or a scalar where
`lanes` is 1. No fast-math flag is ever set, so NaN, infinities and denormals behave as IEEE 754 says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from glowstone.backends.cpu.ir_types import F32, F64, Type, Value, suffix, vector
from glowstone.types import ElementType


@dataclass(frozen=True)
class FloatFormat:
    """An IEEE 754 binary format."""

    bits: int
    mantissa_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.mantissa_bits - 2)) - 1

    @property
    def rounder(self) -> float:
        """1.5 * 2^mantissa: adding it rounds a small number to an integer that then stands in the low bits."""
        return 1.5 * 2.0**self.mantissa_bits

    @property
    def rounder_bits(self) -> int:
        return ((self.bias + self.mantissa_bits) << self.mantissa_bits) | (1 << (self.mantissa_bits - 1))

    @property
    def smallest_normal(self) -> float:
        return float(2.0 ** (1 - self.bias))


FORMATS = {ElementType.F32: FloatFormat(32, 23), ElementType.F64: FloatFormat(64, 52)}


def splat(scalar: Type, lanes: int, value: float) -> Value:
    """A constant with the same value in every lane."""
    return ir.Constant(vector(scalar, lanes), value)


def call_intrinsic(builder: ir.IRBuilder, name: str, result: Type, arguments: Sequence[Value]) -> Value:
    """Call an LLVM intrinsic by its full name, for example `llvm.fma.v8f32`."""
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [value.type for value in arguments]), name)
    return builder.call(function, arguments)


class VectorBuilder:
    """Instructions on vectors of `element` (f32 or f64)."""

    def __init__(self, builder: ir.IRBuilder, element: ElementType, lanes: int, has_fma: bool) -> None:
        self.ir = builder
        self.element = element
        self.lanes = lanes
        self.has_fma = has_fma
        self.format = FORMATS[element]
        self.scalar = F32 if element is ElementType.F32 else F64
        self.type = vector(self.scalar, lanes)
        self.int_scalar = ir.IntType(self.format.bits)
        self.int_type = vector(self.int_scalar, lanes)

    def with_element(self, element: ElementType) -> VectorBuilder:
        """The same lanes of another float type."""
        return VectorBuilder(self.ir, element, self.lanes, self.has_fma)

    def constant(self, value: float) -> Value:
        return splat(self.scalar, self.lanes, value)

    def integer(self, value: int) -> Value:
        return splat(self.int_scalar, self.lanes, value)

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """`x * y + z`, rounded once where the target can."""
        if self.has_fma:
            return call_intrinsic(self.ir, f"llvm.fma.{suffix(self.type)}", self.type, (x, y, z))
        return self.ir.fadd(self.ir.fmul(x, y), z)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Horner's scheme; lowest coefficient first."""
        result = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, self.constant(coefficient))
        return result

    def unary(self, name: str, x: Value) -> Value:
        """An intrinsic of one argument that every target has as an instruction: fabs, sqrt, floor ..."""
        return call_intrinsic(self.ir, f"llvm.{name}.{suffix(self.type)}", self.type, (x,))

    def copy_sign(self, magnitude: Value, sign: Value) -> Value:
        name = f"llvm.copysign.{suffix(self.type)}"
        return call_intrinsic(self.ir, name, self.type, (magnitude, sign))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.ir.select(condition, x, y)

    def less(self, x: Value, y: Value) -> Value:
        """`x < y`; false where either is NaN."""
        return self.ir.fcmp_ordered("<", x, y)

    def equal(self, x: Value, y: Value) -> Value:
        return self.ir.fcmp_ordered("==", x, y)

    def is_nan(self, x: Value) -> Value:
        return self.ir.fcmp_unordered("uno", x, x)

    def at_least(self, x: Value, low: float) -> Value:
        """The larger of x and a number; NaN stays."""
        bound = self.constant(low)
        return self.select(self.less(x, bound), bound, x)

    def at_most(self, x: Value, high: float) -> Value:
        """The smaller of x and a number; NaN stays."""
        bound = self.constant(high)
        return self.select(self.less(bound, x), bound, x)

    def to_bits(self, x: Value) -> Value:
        return self.ir.bitcast(x, self.int_type)

    def from_bits(self, x: Value) -> Value:
        return self.ir.bitcast(x, self.type)

    def small_integer_to_float(self, x: Value) -> Value:
        """An integer of few bits as a float, without the conversion that AVX2 lacks for 64 bits."""
        shifted = self.from_bits(self.ir.add(x, self.integer(self.format.rounder_bits)))
        return self.ir.fsub(shifted, self.constant(self.format.rounder))
