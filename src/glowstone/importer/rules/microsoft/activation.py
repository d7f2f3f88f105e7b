"""Activations of ONNX Runtime's own: Gelu, BiasGelu, FastGelu, QuickGelu; and those that fused operators name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glowstone.errors import ModelError
from glowstone.graph import Operator, Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.domain import microsoft, with_bias
from glowstone.ops import (
    Celu,
    Clip,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Relu,
    Selu,
    Sigmoid,
    Softplus,
    Softsign,
    Swish,
    Tanh,
    ThresholdedRelu,
)
from glowstone.ops.activation import SELU_ALPHA, SELU_GAMMA
from glowstone.ops.constant import scalar

QUICK_GELU_ALPHA = 1.702
"""Of the approximation of GELU by x / (1 + e^(-alpha x))."""

_ACTIVATIONS: dict[str, tuple[Callable[..., Operator], tuple[float, ...]]] = {
    "Celu": (Celu, (1.0,)),
    "Elu": (Elu, (1.0,)),
    "HardSigmoid": (HardSigmoid, (0.2, 0.5)),
    "HardSwish": (HardSwish, ()),
    "LeakyRelu": (LeakyRelu, (0.01,)),
    "Relu": (Relu, ()),
    "Selu": (Selu, (SELU_ALPHA, SELU_GAMMA)),
    "Sigmoid": (Sigmoid, ()),
    "Softplus": (Softplus, ()),
    "Softsign": (Softsign, ()),
    "Tanh": (Tanh, ()),
    "ThresholdedRelu": (ThresholdedRelu, (1.0,)),
}
"""By the name in attribute `activation`: the operator, and the defaults of its parameters in their order."""


def activated(node: OnnxNode, x: Value, parameters: Sequence[float | None]) -> Value:
    """x under the function that attribute `activation` names; x itself without one.

    `parameters` are those of the function in their order; None, or too few, for the defaults.

    Raises:
        ModelError: Clip without both bounds.
        UnsupportedError: an unknown name.
    """
    name = node.text("activation", "")
    if not name:
        return x
    if name == "Clip":
        if len(parameters) < 2:
            raise ModelError("the bounds of Clip are missing", expected="two numbers", found=list(parameters))
        bounds = [scalar(node.builder, bound or 0.0, x.element) for bound in parameters[:2]]
        return node.emit(Clip(), x, *bounds)
    if name not in _ACTIVATIONS:
        raise node.refuse("activation", ", ".join(sorted((*_ACTIVATIONS, "Clip"))))
    make, defaults = _ACTIVATIONS[name]
    given = (*parameters, *(None,) * len(defaults))[: len(defaults)]
    numbers = (default if number is None else number for number, default in zip(given, defaults, strict=True))
    return node.emit(make(*numbers), x)


@microsoft("Gelu")
@microsoft("BiasGelu")
def import_gelu(node: OnnxNode) -> Value:
    return node.emit(Gelu(), with_bias(node, node.operand(0), node.optional(1)))


@microsoft("FastGelu")
def import_fast_gelu(node: OnnxNode) -> Value:
    return node.emit(Gelu(approximate=True), with_bias(node, node.operand(0), node.optional(1)))


@microsoft("QuickGelu")
def import_quick_gelu(node: OnnxNode) -> Value:
    return node.emit(Swish(node.number("alpha", QUICK_GELU_ALPHA)), node.operand(0))
