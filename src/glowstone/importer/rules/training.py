"""Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of an optimizer, as arithmetic.

Operands are the rate R, the number T of steps taken, and then, for several tensors at once, all tensors, all gradients,
and all of each state; results are the new tensors, then the new states.
"""

from __future__ import annotations

from collections.abc import Callable

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Add, Div, Greater, Mul, Pow, Sqrt, Sub, Where
from glowstone.ops.constant import scalar
from glowstone.ops.widening import converted

DOMAIN = "ai.onnx.preview.training"
RATE_AND_STEPS = 2

Step = Callable[["Arithmetic", OnnxNode, tuple[Value, ...]], tuple[Value, ...]]
"""From (x, gradient, states ...) to (x, states ...)."""


class Arithmetic:
    """Operators on values and numbers, in the element type of x."""

    def __init__(self, node: OnnxNode, x: Value) -> None:
        self._node = node
        self._element = x.element
        self.rate = self.value(node.operand(0))
        self.steps = node.operand(1)

    def value(self, number: Value | float) -> Value:
        if isinstance(number, Value):
            return converted(self._node.builder, number, self._element)
        return scalar(self._node.builder, number, self._element)

    def add(self, a: Value | float, b: Value | float) -> Value:
        return self._node.emit(Add(), self.value(a), self.value(b))

    def sub(self, a: Value | float, b: Value | float) -> Value:
        return self._node.emit(Sub(), self.value(a), self.value(b))

    def mul(self, a: Value | float, b: Value | float) -> Value:
        return self._node.emit(Mul(), self.value(a), self.value(b))

    def div(self, a: Value | float, b: Value | float) -> Value:
        return self._node.emit(Div(), self.value(a), self.value(b))

    def root(self, a: Value) -> Value:
        return self._node.emit(Sqrt(), a)

    def power_of_steps(self, base: float) -> Value:
        return self._node.emit(Pow(), self.value(base), self.value(self.steps))

    def after_first(self, later: Value | float, first: Value | float) -> Value:
        """`later` where at least one step was taken, else `first`."""
        zero = scalar(self._node.builder, 0, self.steps.element)
        taken = self._node.emit(Greater(), self.steps, zero)
        return self._node.emit(Where(), taken, self.value(later), self.value(first))

    def regularized(self, node: OnnxNode, x: Value, gradient: Value) -> Value:
        """The gradient with that of norm_coefficient / 2 times the squared norm of x."""
        return self.add(self.mul(node.number("norm_coefficient", 0.0), x), gradient)


def _of_each_tensor(step: Step, states: int, node: OnnxNode) -> tuple[Value, ...]:
    """The step for every group (x, gradient, states ...); results by kind, as the operator has them."""
    kinds = 2 + states
    count, rest = divmod(len(node.operands) - RATE_AND_STEPS, kinds)
    if rest or count < 1:
        raise ModelError(
            "operands do not come in groups", expected=f"2 and a multiple of {kinds}", found=len(node.operands)
        )
    groups = []
    for index in range(count):
        group = tuple(node.operand(RATE_AND_STEPS + kind * count + index) for kind in range(kinds))
        groups.append(step(Arithmetic(node, group[0]), node, group))
    return tuple(result for kind in zip(*groups, strict=True) for result in kind)


def _adagrad(on: Arithmetic, node: OnnxNode, group: tuple[Value, ...]) -> tuple[Value, ...]:
    x, gradient, squares = group
    decay = on.add(1.0, on.mul(on.steps, node.number("decay_factor", 0.0)))
    gradient = on.regularized(node, x, gradient)
    squares = on.add(squares, on.mul(gradient, gradient))
    scale = on.add(on.root(squares), node.number("epsilon", 1e-6))
    return on.sub(x, on.div(on.mul(on.div(on.rate, decay), gradient), scale)), squares


def _adam(on: Arithmetic, node: OnnxNode, group: tuple[Value, ...]) -> tuple[Value, ...]:
    x, gradient, mean, squares = group
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    gradient = on.regularized(node, x, gradient)
    mean = on.add(on.mul(alpha, mean), on.mul(1 - alpha, gradient))
    squares = on.add(on.mul(beta, squares), on.mul(1 - beta, on.mul(gradient, gradient)))
    scale = on.add(on.root(squares), node.number("epsilon", 1e-6))
    correction = on.div(on.root(on.sub(1.0, on.power_of_steps(beta))), on.sub(1.0, on.power_of_steps(alpha)))
    rate = on.after_first(on.mul(on.rate, correction), on.rate)
    moved = on.sub(x, on.mul(rate, on.div(mean, scale)))
    return on.mul(1 - node.number("norm_coefficient_post", 0.0), moved), mean, squares


def _momentum(on: Arithmetic, node: OnnxNode, group: tuple[Value, ...]) -> tuple[Value, ...]:
    x, gradient, velocity = group
    mode = node.text("mode", "")
    if mode not in ("standard", "nesterov"):
        raise ModelError("attribute mode is unknown", expected="standard, nesterov", found=mode)
    alpha = node.number("alpha", 0.0)
    gradient = on.regularized(node, x, gradient)
    weight = on.after_first(node.number("beta", 0.0), 1.0)
    velocity = on.add(on.mul(alpha, velocity), on.mul(weight, gradient))
    direction = velocity if mode == "standard" else on.add(gradient, on.mul(alpha, velocity))
    return on.sub(x, on.mul(on.rate, direction)), velocity


@imports("Adagrad", domain=DOMAIN)
def import_adagrad(node: OnnxNode) -> tuple[Value, ...]:
    return _of_each_tensor(_adagrad, 1, node)


@imports("Adam", domain=DOMAIN)
def import_adam(node: OnnxNode) -> tuple[Value, ...]:
    return _of_each_tensor(_adam, 2, node)


@imports("Momentum", domain=DOMAIN)
def import_momentum(node: OnnxNode) -> tuple[Value, ...]:
    return _of_each_tensor(_momentum, 1, node)
