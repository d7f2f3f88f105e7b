"""The activation functions that networks use most. 16-bit floats are computed in float32 and rounded once."""

from __future__ import annotations

from glowstone.graph import Operand, operator
from glowstone.ops.element_sets import SIGNED
from glowstone.ops.elementwise_base import FLOAT, Unary, in_float32
from glowstone.scalar import Expression, Literal, apply


@operator
class Relu(Unary):
    """x where positive, else 0. ONNX Relu-14."""

    onnx = "Relu-14"
    operands = (Operand("x", SIGNED),)

    def expression(self, *inputs: Expression) -> Expression:
        return apply("max", inputs[0], Literal(inputs[0].element, 0))


@operator
class LeakyRelu(Unary):
    """x where x >= 0, alpha * x elsewhere. ONNX LeakyRelu-16."""

    onnx = "LeakyRelu-16"
    operands = FLOAT
    alpha: float = 0.01

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(self._leaky, *inputs)

    def _leaky(self, x: Expression) -> Expression:
        negative = apply("less", x, Literal(x.element, 0.0))
        return apply("select", negative, apply("mul", x, Literal(x.element, self.alpha)), x)


@operator
class Sigmoid(Unary):
    """1 / (1 + exp(-x)). ONNX Sigmoid-13."""

    onnx = "Sigmoid-13"
    operands = FLOAT

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(sigmoid, *inputs)


def sigmoid(x: Expression) -> Expression:
    """1 / (1 + exp(-x))."""
    return apply("sigmoid", x)


@operator
class HardSigmoid(Unary):
    """max(0, min(1, alpha * x + beta)). ONNX HardSigmoid-6."""

    onnx = "HardSigmoid-6"
    operands = FLOAT
    alpha: float = 0.2
    beta: float = 0.5

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(self._limited_line, *inputs)

    def _limited_line(self, x: Expression) -> Expression:
        line = apply("add", apply("mul", x, Literal(x.element, self.alpha)), Literal(x.element, self.beta))
        return apply("max", apply("min", line, Literal(x.element, 1.0)), Literal(x.element, 0.0))
