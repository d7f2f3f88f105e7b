"""All basic elementwise operators under one name, and those that convert, limit or fuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone import scalar
from glowstone.errors import ShapeError
from glowstone.graph import Operand, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.arithmetic import (
    Abs,
    Add,
    Ceil,
    Div,
    Erf,
    Exp,
    Floor,
    Log,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Pow,
    Reciprocal,
    Round,
    Sqrt,
    Sub,
    Tanh,
)
from glowstone.ops.basic_activation import (
    HardSigmoid,
    LeakyRelu,
    Relu,
    Sigmoid,
    sigmoid,
)
from glowstone.ops.element_sets import ALL, ANY, BOOLS, FLOATS_OF_8_BITS, NARROW, NUMBERS, SIGNED
from glowstone.ops.elementwise_base import (
    FLOAT,
    UNARY,
    Binary,
    Elementwise,
    Unary,
    check_layout,
    in_float32,
)
from glowstone.ops.elementwise_samples import (
    HALF_TOLERANCES,
    typed_samples,
    unary_samples,
)
from glowstone.ops.logic import (
    And,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Not,
    Or,
    Where,
    Xor,
)
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.types import ElementType, TensorType

__all__ = [
    "FLOAT",
    "HALF_TOLERANCES",
    "UNARY",
    "Abs",
    "Add",
    "And",
    "Binary",
    "Cast",
    "Ceil",
    "Clip",
    "Div",
    "Elementwise",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "Identity",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Map",
    "Maximum",
    "Minimum",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Sigmoid",
    "Sqrt",
    "Sub",
    "Tanh",
    "Unary",
    "Where",
    "Xor",
    "check_layout",
    "in_float32",
    "sigmoid",
    "typed_samples",
    "unary_samples",
]

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDINGS = ("up", "down", "nearest")
"""Ways of rounding to a power of two."""
F64_EXPONENT, F64_HALF = 0xFFF0_0000_0000_0000, 0x0008_0000_0000_0000
"""Bits of float64: sign and exponent, and the upper bit of the mantissa."""
CAST_FROM_NARROW = (ElementType.F32, ElementType.F16, ElementType.I32, ElementType.U64, ElementType.BOOL)
"""Targets of conversions of narrow numbers that samples show."""


@operator
class Clip(Elementwise):
    """x limited to [low, high]; either limit may be left out. ONNX Clip-13."""

    onnx = "Clip-13"
    operands = (Operand("x", NUMBERS), Operand("low", NUMBERS, optional=True), Operand("high", NUMBERS, optional=True))

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        x = operands[0]
        assert x is not None
        for limit in operands[1:]:
            if limit is not None and (limit.type.size != 1 or limit.element is not x.element):
                raise ShapeError(
                    "a limit of Clip is one element of x's type", expected=f"{x.element}[]", found=str(limit.type)
                )
        return (x.type,)

    def reference(self, *operands: Any) -> Array:
        x, low, high = (*operands, None, None)[:3]
        result = x if low is None else np.maximum(x, np.reshape(low, ()))
        return np.asarray(result if high is None else np.minimum(result, np.reshape(high, ())))

    def decompose(self, builder: Any, *operands: Any) -> Value:
        x, low, high = (*operands, None, None)[:3]
        result: Value = x
        if low is not None:
            result = builder.emit(Maximum(), result, low)
        if high is not None:
            result = builder.emit(Minimum(), result, high)
        return builder.emit(Identity(), result) if result is x else result

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.linspace(-3, 3, 20, dtype=np.float32).reshape(4, 5)
        one, two = np.array(-1, np.float32), np.array(2, np.float32)
        return [
            Sample(cls(), (x, one, two)),
            Sample(cls(), (x, None, two)),
            Sample(cls(), (x, one)),
            Sample(cls(), (x,)),
            Sample(cls(), (x, two, one)),
            *(_clip_of(element) for element in sorted(NUMBERS, key=str)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 2), np.float32)
        return [ErrorSample(cls(), (x, x), "a limit of Clip")]


def _clip_of(element: ElementType) -> Sample:
    x, low, high = np.arange(9), np.array(2), np.array(5)
    return Sample(Clip(), tuple(array.astype(element.dtype) for array in (x, low, high)))


@operator
class Cast(Elementwise):
    """Conversion to another element type. ONNX Cast-25.

    `saturates` says whether numbers beyond the range of a float of 8 bits become its largest, rather than infinity or
    NaN. `rounding` is "up", "down" or "nearest" (halves up), for powers of two (f8e8m0) only.
    """

    onnx = "Cast-25"
    operands = UNARY
    to: ElementType = ElementType.F32
    saturates: bool = True
    rounding: str = "up"

    def expression(self, *inputs: Expression) -> Expression:
        (x,) = inputs
        if self.to is ElementType.F8E8M0:
            x = rounded_to_power(x, self.rounding)
        return scalar.cast(x, self.to, self.saturates)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.array([-3.7, -0.5, 0.0, 0.5, 100.25], np.float32)
        negative = [Sample(cls(to), (x,)) for to in sorted(SIGNED | BOOLS, key=str)]
        small = np.array([0.0, 0.5, 1.0, 2.75, 100.0, 127.0])
        pairs = [(source, to) for source in ALL for to in ALL if source is not to]
        typed = [Sample(cls(to), (small.astype(source.dtype),)) for source, to in sorted(pairs, key=str)]
        return [*negative, *typed, *cls._narrow_samples(), *cls._limits()]

    @classmethod
    def _narrow_samples(cls) -> Sequence[Sample]:
        x, powers = np.array([-3.7, -0.5, 0.0, 0.5, 1.25], np.float32), np.array([0.5, 1.0, 2.0, 4.0])
        narrow = sorted(NARROW, key=str)
        return [
            *(Sample(cls(to), (powers.astype(source.dtype),)) for source in narrow for to in CAST_FROM_NARROW),
            *(Sample(cls(to), (x,)) for to in narrow if to is not ElementType.F8E8M0),
        ]

    @classmethod
    def _limits(cls) -> Sequence[Sample]:
        """Beyond the largest number, and between two powers of two."""
        x = np.array([-1e30, -448, 448, 465, 57344, 61440, 1e30, np.inf, -np.inf, np.nan], np.float32)
        powers = np.array([0.0, 0.124, 0.25, 0.37, 0.375, 0.38, 1.1, 3.0, 1.5e38], np.float32)
        modes = [(rounding, saturates) for rounding in ROUNDINGS for saturates in (True, False)]
        elements = sorted(FLOATS_OF_8_BITS, key=str)
        return [
            *(Sample(cls(to, saturates), (x,)) for to in elements for saturates in (True, False)),
            *(Sample(cls(ElementType.F8E8M0, saturates, rounding), (powers[1:],)) for rounding, saturates in modes),
            Sample(cls(ElementType.F8E8M0), (powers,)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(ElementType.F8E8M0, rounding="odd"), (np.ones(3),), "do not go together")]


def rounded_to_power(x: Expression, rounding: str) -> Expression:
    """A number that conversion to a power of two, which rounds up, takes to the power wanted.

    Raises:
        TypeError: no such way of rounding.
    """
    if rounding not in ROUNDINGS:
        raise TypeError(f"rounding {rounding} is none of {', '.join(ROUNDINGS)}")
    if rounding == "up":
        return x
    wide = scalar.cast(x, ElementType.F64)
    bits = scalar.reinterpret(wide, ElementType.U64)
    if rounding == "nearest":
        bits = apply("add", bits, Literal(ElementType.U64, F64_HALF))
    power = scalar.reinterpret(apply("and", bits, Literal(ElementType.U64, F64_EXPONENT)), ElementType.F64)
    # infinity and NaN are none; infinity stays beyond the range, and NaN is unequal to all
    is_finite = apply("less", apply("abs", wide), Literal(ElementType.F64, math.inf))
    return apply("select", is_finite, power, wide)


@operator
class Identity(Elementwise):
    """x. ONNX Identity-16."""

    onnx = "Identity-16"
    operands = UNARY

    def expression(self, *inputs: Expression) -> Expression:
        return inputs[0]

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return unary_samples(cls())


@operator
class Map(Elementwise):
    """A fused region: any scalar expression of `arity` operands. What fusion makes of other elementwise operators."""

    operands = (Operand("x", ANY, variadic=True),)
    body: Expression = Input(ElementType.F32, 0)
    arity: int = 1

    def expression(self, *inputs: Expression) -> Expression:
        if len(inputs) != self.arity:
            raise TypeError(f"{len(inputs)} inputs, not {self.arity}")
        for value in scalar.inputs_of(self.body):
            if inputs[value.index].element is not value.element:
                raise TypeError(f"input {value.index} is {inputs[value.index].element}, not {value.element}")
        return self.body

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        result = []
        for element in sorted(ALL, key=str):
            x, y = Input(element, 0), Input(element, 1)
            body = apply("max", apply("add", x, apply("mul", y, Literal(element, 2))), x)
            if element is ElementType.BOOL:
                body = apply("or", x, y)
            arrays = np.linspace(0, 6, 12).reshape(3, 4), np.arange(3).reshape(3, 1)
            typed = tuple(np.rint(array).astype(element.dtype) for array in arrays)
            result.append(Sample(cls(body, 2), typed, HALF_TOLERANCES.get(element, Sample.tolerance)))
        return result

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        negation = cls(apply("neg", Input(ElementType.F32, 0)), 1)
        return [ErrorSample(negation, (np.arange(3),), "element types do not go together")]
