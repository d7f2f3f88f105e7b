"""The table of import rules: one per ONNX operator, with the opset its form starts at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glowstone.errors import ModelError, UnsupportedError
from glowstone.graph import Builder, Operator, Value
from glowstone.graph.operator import Array

Rule = Callable[["OnnxNode"], "Value | tuple[Value, ...]"]
RULES: dict[str, list[tuple[int, Rule]]] = {}
"""Rules by ONNX operator name, each from its first opset on, newest first."""


def imports(name: str, since: int = 1) -> Callable[[Rule], Rule]:
    """Register a rule for an operator of the default domain, from opset `since` on."""

    def register(rule: Rule) -> Rule:
        RULES.setdefault(name, []).append((since, rule))
        RULES[name].sort(key=lambda entry: -entry[0])
        return rule

    return register


def rule_for(name: str, opset: int) -> Rule | None:
    """The rule in force at an opset; None where there is none."""
    return next((rule for since, rule in RULES.get(name, ()) if since <= opset), None)


class OnnxNode:
    """What a rule sees of a node: operands as values, attributes as Python values, and the builder."""

    def __init__(
        self,
        builder: Builder,
        kind: str,
        name: str,
        operands: tuple[Value | None, ...],
        attributes: dict[str, Any],
        opset: int,
        result_count: int = 1,
    ) -> None:
        self.builder = builder
        self.kind = kind
        self.name = name
        self.operands = operands
        self.attributes = attributes
        self.opset = opset
        self.result_count = result_count

    def operand(self, index: int) -> Value:
        """A required operand.

        Raises:
            ModelError: it is missing.
        """
        value = self.optional(index)
        if value is None:
            raise ModelError(
                "an operand is missing", expected=f"at least {index + 1} operands", found=len(self.operands)
            )
        return value

    def optional(self, index: int) -> Value | None:
        return self.operands[index] if index < len(self.operands) else None

    def emit(self, operator: Operator, *operands: Value | None) -> Value:
        return self.builder.emit(operator, *operands)

    def constant(self, index: int, name: str) -> Array | None:
        """The array of an operand that must not depend on inputs; None where it is left out.

        Raises:
            UnsupportedError: it is computed from an input.
        """
        value = self.optional(index)
        if value is None:
            return None
        if value.known is None or value.dynamic:
            raise UnsupportedError(
                f"operand {name} is computed from an input",
                expected="a constant",
                remedy="fix the input it depends on with constants={...}",
            )
        return value.known

    def integers(self, index: int, name: str) -> tuple[int, ...] | None:
        """`constant` as a tuple of integers."""
        array = self.constant(index, name)
        return None if array is None else tuple(int(number) for number in array.ravel())

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def refuse(self, attribute: str, expected: object) -> UnsupportedError:
        """An error about an attribute's value."""
        return UnsupportedError(
            f"attribute {attribute} has a value that is not supported", expected=expected, found=self.get(attribute)
        )
