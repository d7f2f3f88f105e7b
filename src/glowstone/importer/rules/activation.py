"""Activation functions."""

from __future__ import annotations

import functools
from collections.abc import Callable

from glowstone.graph import Operator, Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import (
    Celu,
    Elu,
    Gelu,
    HardSwish,
    Mish,
    PRelu,
    Selu,
    Shrink,
    Softplus,
    Softsign,
    SwiGLU,
    Swish,
    ThresholdedRelu,
)
from glowstone.ops.activation import SELU_ALPHA, SELU_GAMMA

_ACTIVATIONS: dict[str, Callable[[OnnxNode], Operator]] = {
    "Celu": lambda node: Celu(node.number("alpha", 1.0)),
    "Elu": lambda node: Elu(node.number("alpha", 1.0)),
    "HardSwish": lambda node: HardSwish(),
    "Mish": lambda node: Mish(),
    "PRelu": lambda node: PRelu(),
    "Selu": lambda node: Selu(node.number("alpha", SELU_ALPHA), node.number("gamma", SELU_GAMMA)),
    "Shrink": lambda node: Shrink(node.number("bias", 0.0), node.number("lambd", 0.5)),
    "Softplus": lambda node: Softplus(),
    "Softsign": lambda node: Softsign(),
    "SwiGLU": lambda node: SwiGLU(node.number("alpha", 1.0)),
    "Swish": lambda node: Swish(node.number("alpha", 1.0)),
    "ThresholdedRelu": lambda node: ThresholdedRelu(node.number("alpha", 1.0)),
}


def _import_activation(make: Callable[[OnnxNode], Operator], node: OnnxNode) -> Value:
    return node.emit(make(node), *node.operands)


for _name, _make in _ACTIVATIONS.items():
    imports(_name)(functools.partial(_import_activation, _make))


@imports("Gelu", since=20)
def import_gelu(node: OnnxNode) -> Value:
    approximation = node.text("approximate", "none")
    if approximation not in ("none", "tanh"):
        raise node.refuse("approximate", "none or tanh")
    return node.emit(Gelu(approximation == "tanh"), node.operand(0))
