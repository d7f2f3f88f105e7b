"""The domain of ONNX Runtime's own operators, and what its rules share. Its versions have all been 1 so far."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, RuleForm, imports
from glowstone.ops import Add

MICROSOFT = "com.microsoft"


def microsoft(name: str) -> Callable[[RuleForm], RuleForm]:
    """Register a rule for an operator of the domain."""
    return imports(name, domain=MICROSOFT)


def with_bias(node: OnnxNode, x: Value, bias: Value | None) -> Value:
    """x + bias, or x where the bias is left out."""
    return x if bias is None else node.emit(Add(), x, bias)


def required_integer(node: OnnxNode, name: str) -> int:
    """An attribute of kind INT without a default.

    Raises:
        ModelError: it is missing.
    """
    value = node.optional_integer(name)
    if value is None:
        raise ModelError(f"attribute {name} is missing", expected="an integer")
    return value


def refuse_operands(node: OnnxNode, names: dict[int, str]) -> None:
    """Refuse optional operands whose meaning is not supported.

    Raises:
        ModelError: one of them, named by its index, is given.
    """
    for index, name in names.items():
        if node.optional(index) is not None:
            raise node.refuse_operand(name)
