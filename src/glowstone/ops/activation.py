"""Activation functions. 16-bit floats are computed in float32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS, NUMBERS
from glowstone.ops.elementwise import FLOAT, Binary, Elementwise, Unary, in_float32, sigmoid, typed_samples
from glowstone.scalar import Expression, Literal, apply, cast
from glowstone.types import ElementType, TensorType

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875
TANH_GELU_CUBIC = 0.044715


class Activation(Unary):
    """Base: `activate` is the function of one float32 or float64."""

    operands = FLOAT

    def activate(self, x: Expression) -> Expression:
        """The value of one element."""
        raise NotImplementedError

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(self.activate, *inputs)


def number(x: Expression, value: float) -> Literal:
    """A number of x's element type."""
    return Literal(x.element, value)


def softplus(x: Expression) -> Expression:
    """log(1 + e^x), as max(x, 0) + log(1 + e^-|x|), which does not overflow."""
    rest = apply("log1p", apply("exp", apply("neg", apply("abs", x))))
    return apply("add", apply("max", x, number(x, 0.0)), rest)


def where_negative(x: Expression, negative: Expression, other: Expression) -> Expression:
    """`negative` where x < 0."""
    return apply("select", apply("less", x, number(x, 0.0)), negative, other)


@operator
class Softplus(Activation):
    """log(1 + e^x). ONNX Softplus-22."""

    onnx = "Softplus-22"

    def activate(self, x: Expression) -> Expression:
        return softplus(x)


@operator
class Softsign(Activation):
    """x / (1 + |x|). ONNX Softsign-22."""

    onnx = "Softsign-22"

    def activate(self, x: Expression) -> Expression:
        return apply("div", x, apply("add", number(x, 1.0), apply("abs", x)))


@operator
class Elu(Activation):
    """alpha (e^x - 1) where x < 0, else x. ONNX Elu-22."""

    onnx = "Elu-22"
    alpha: float = 1.0

    def activate(self, x: Expression) -> Expression:
        return where_negative(x, apply("mul", number(x, self.alpha), apply("expm1", x)), x)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [*super().samples(), *typed_samples(cls(0.5), (ElementType.F32,))]


@operator
class Selu(Activation):
    """gamma alpha (e^x - 1) where x <= 0, else gamma x. ONNX Selu-22."""

    onnx = "Selu-22"
    alpha: float = SELU_ALPHA
    gamma: float = SELU_GAMMA

    def activate(self, x: Expression) -> Expression:
        curve = apply("mul", number(x, self.alpha), apply("expm1", x))
        return apply("mul", number(x, self.gamma), where_negative(x, curve, x))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [*super().samples(), *typed_samples(cls(2.0, 3.0), (ElementType.F32,))]


@operator
class Celu(Activation):
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1)). ONNX Celu-12."""

    onnx = "Celu-12"
    alpha: float = 1.0

    def activate(self, x: Expression) -> Expression:
        zero = number(x, 0.0)
        curve = apply("expm1", apply("div", x, number(x, self.alpha)))
        below = apply("min", zero, apply("mul", number(x, self.alpha), curve))
        return apply("add", apply("max", zero, x), below)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [*super().samples(), *typed_samples(cls(2.0), (ElementType.F32,))]


@operator
class ThresholdedRelu(Activation):
    """x where x > alpha, else 0. ONNX ThresholdedRelu-22."""

    onnx = "ThresholdedRelu-22"
    alpha: float = 1.0

    def activate(self, x: Expression) -> Expression:
        return apply("select", apply("less", number(x, self.alpha), x), x, number(x, 0.0))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [*super().samples(), *typed_samples(cls(-0.5), (ElementType.F32,))]


@operator
class HardSwish(Activation):
    """x max(0, min(1, x / 6 + 1 / 2)). ONNX HardSwish-22."""

    onnx = "HardSwish-22"
    domain = (-5.0, 5.0)

    def activate(self, x: Expression) -> Expression:
        line = apply("add", apply("mul", x, number(x, 1 / 6)), number(x, 0.5))
        limited = apply("max", apply("min", line, number(x, 1.0)), number(x, 0.0))
        return apply("mul", x, limited)


@operator
class Mish(Activation):
    """x tanh(log(1 + e^x)). ONNX Mish-22."""

    onnx = "Mish-22"

    def activate(self, x: Expression) -> Expression:
        return apply("mul", x, apply("tanh", softplus(x)))


@operator
class Gelu(Activation):
    """x times the normal distribution function of x, or its approximation by tanh. ONNX Gelu-20."""

    onnx = "Gelu-20"
    approximate: bool = False

    def activate(self, x: Expression) -> Expression:
        half, one = number(x, 0.5), number(x, 1.0)
        if self.approximate:
            cube = apply("mul", apply("mul", x, x), x)
            inner = apply("add", x, apply("mul", number(x, TANH_GELU_CUBIC), cube))
            curve = apply("tanh", apply("mul", number(x, math.sqrt(2 / math.pi)), inner))
        else:
            curve = apply("erf", apply("mul", x, number(x, math.sqrt(0.5))))
        return apply("mul", apply("mul", half, x), apply("add", one, curve))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [*super().samples(), *typed_samples(cls(True), FLOATS)]


@operator
class Swish(Activation):
    """x / (1 + e^(-alpha x)). ONNX Swish-24."""

    onnx = "Swish-24"
    alpha: float = 1.0

    def activate(self, x: Expression) -> Expression:
        return apply("mul", x, sigmoid(apply("mul", number(x, self.alpha), x)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [*super().samples(), *typed_samples(cls(0.5), (ElementType.F32,))]


@operator
class SwiGLU(Binary):
    """Swish of the gate, times the value. ONNX SwiGLU-28."""

    onnx = "SwiGLU-28"
    operands = (Operand("gate", FLOATS), Operand("value", FLOATS))
    alpha: float = 1.0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        gate, value = operands
        if gate.shape != value.shape:
            raise ShapeError("gate and value have one shape", expected=list(gate.shape), found=list(value.shape))
        return super().infer(*operands)

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(self._gated, *inputs)

    def _gated(self, gate: Expression, value: Expression) -> Expression:
        return apply("mul", Swish(self.alpha).activate(gate), value)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return typed_samples(cls(), FLOATS) + typed_samples(cls(0.5), (ElementType.F32,))

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [ErrorSample(cls(), (x, x[:, :1]), "one shape")]


@operator
class PRelu(Binary):
    """slope x where x < 0, else x; the slope broadcasts to x. ONNX PRelu-16."""

    onnx = "PRelu-16"
    operands = (Operand("x", NUMBERS), Operand("slope", NUMBERS))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (result,) = super().infer(*operands)
        if result.shape != operands[0].shape:
            raise ShapeError(
                "the slope must broadcast to x", expected=list(operands[0].shape), found=list(operands[1].shape)
            )
        return (result,)

    def expression(self, *inputs: Expression) -> Expression:
        x, slope = inputs
        zero = Literal(x.element, 0)
        return apply("select", apply("less", x, zero), apply("mul", slope, x), x)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        elements = (*FLOATS, ElementType.I32, ElementType.I64, ElementType.U32, ElementType.U64)
        x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
        per_channel = np.array([[0.5], [-1.0], [0.1]], np.float32)
        return [*typed_samples(cls(), elements), Sample(cls(), (x, per_channel)), Sample(cls(), (x, x[0, 0, 0]))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [ErrorSample(cls(), (x, x[:, :2]), "broadcast"), ErrorSample(cls(), (x[:1], x), "broadcast to x")]


@operator
class Shrink(Elementwise):
    """x + bias below -threshold, x - bias above it, else 0. Integers are computed in float64. ONNX Shrink-9."""

    onnx = "Shrink-9"
    operands = (Operand("x", NUMBERS),)
    bias: float = 0.0
    threshold: float = 0.5

    def expression(self, *inputs: Expression) -> Expression:
        (x,) = inputs
        if x.element.is_float:
            return in_float32(self._shrunk, x)
        return cast(self._shrunk(cast(x, ElementType.F64)), x.element)

    def _shrunk(self, x: Expression) -> Expression:
        bias, threshold = number(x, self.bias), number(x, self.threshold)
        above = apply("select", apply("less", threshold, x), apply("sub", x, bias), number(x, 0.0))
        return apply("select", apply("less", x, apply("neg", threshold)), apply("add", x, bias), above)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return typed_samples(cls(), NUMBERS) + typed_samples(cls(1.0, 1.5), (ElementType.F32, ElementType.I32))
