"""The table of operators that run on the host: what works on sequences, optionals, texts, maps and image files.

Values are NumPy arrays (texts as objects), lists for sequences, dictionaries for maps, None for an empty optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from glowstone.errors import ExecutionError, ModelError

Array = np.ndarray[Any, np.dtype[Any]]
HostValue: TypeAlias = Any
"""An array, a list of host values, a dictionary, None, or `MISSING`."""


class Missing(Enum):
    """What stands for an operand that is left out, which an empty optional is not."""

    OPERAND = 0


MISSING = Missing.OPERAND


class Kind(Enum):
    """What an attribute may be, as errors call it."""

    INTEGER = "an integer"
    NUMBER = "a float"
    TEXT = "a text"
    INTEGERS = "integers"
    NUMBERS = "floats"
    TEXTS = "texts"
    TENSOR = "a tensor"
    TYPE = "an element type"


_CLASSES: Mapping[Kind, type] = {
    Kind.INTEGER: int,
    Kind.NUMBER: float,
    Kind.TEXT: str,
    Kind.INTEGERS: int,
    Kind.NUMBERS: float,
    Kind.TEXTS: str,
    Kind.TENSOR: np.ndarray,
    Kind.TYPE: np.dtype,
}
_LISTS = frozenset({Kind.INTEGERS, Kind.NUMBERS, Kind.TEXTS})


class HostBody(Protocol):
    """A graph that is an attribute of a node."""

    @property
    def input_count(self) -> int:
        """How many inputs it declares."""

    @property
    def output_shapes(self) -> Sequence[tuple[np.dtype[Any], tuple[int, ...]] | None]:
        """Type and shape that each output declares, 0 for an open extent; None where it declares none."""

    def run(self, inputs: Sequence[HostValue]) -> list[HostValue]:
        """Run it once."""


@dataclass(frozen=True)
class HostNode:
    """A node of the file as its host rule sees it."""

    kind: str
    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """By name: numbers, texts, arrays, or tuples of the first two."""
    bodies: Mapping[str, HostBody] = field(default_factory=dict)
    opset: int = 1
    result_count: int = 1

    def attribute(self, name: str, kind: Kind, default: Any = None) -> Any:
        """An attribute, or the default where it is left out.

        Raises:
            ModelError: it is of another kind.
        """
        if name not in self.attributes:
            return default
        value = self.attributes[name]
        is_list = kind in _LISTS
        elements = value if is_list and isinstance(value, tuple) else (value,)
        if isinstance(value, tuple) is not is_list or not all(isinstance(one, _CLASSES[kind]) for one in elements):
            raise ModelError(f"attribute {name} has the wrong kind", expected=kind.value, found=repr(value)[:80])
        return value

    def required(self, name: str, kind: Kind) -> Any:
        """An attribute that must be there.

        Raises:
            ModelError: it is missing, or of another kind.
        """
        value = self.attribute(name, kind)
        if value is None:
            raise ModelError(f"attribute {name} is missing", expected=kind.value)
        return value

    def body(self, name: str) -> HostBody:
        """A required attribute that is a graph.

        Raises:
            ModelError: it is missing.
        """
        if name not in self.bodies:
            raise ModelError(f"attribute {name} is missing", node=self.name, operator=self.kind, expected="a graph")
        return self.bodies[name]


HostRule = Callable[[HostNode, Sequence[HostValue]], "HostValue | tuple[HostValue, ...]"]
RuleType = TypeVar("RuleType", bound=HostRule)
HOST_RULES: dict[tuple[str, str], HostRule] = {}
"""By domain and ONNX operator name."""


TEXT_RULES: set[HostRule] = set()
"""Rules for texts only; the same operators on numbers are compiled."""


def runs_on_host(*names: str, domain: str = "", texts: bool = False) -> Callable[[RuleType], RuleType]:
    """Register the meaning of operators, for texts only or for all values that are no part of a compiled graph.

    Their results are one value, or a tuple of several.
    """

    def register(rule: RuleType) -> RuleType:
        if texts:
            TEXT_RULES.add(rule)
        for name in names:
            if HOST_RULES.setdefault((domain, name), rule) is not rule:
                raise AssertionError(f"two host rules for {name}")
        return rule

    return register


def host_rule(name: str, domain: str = "") -> HostRule | None:
    """The meaning of an operator on the host; None where there is none."""
    return HOST_RULES.get((domain, name))


def is_for_texts(rule: HostRule) -> bool:
    """Whether a rule is for texts only."""
    return rule in TEXT_RULES


def operand_at(node: HostNode, operands: Sequence[HostValue], index: int) -> HostValue:
    """A required operand.

    Raises:
        ModelError: it is left out.
    """
    value = operands[index] if index < len(operands) else MISSING
    if value is MISSING:
        raise ModelError("an operand is missing", expected=f"at least {index + 1} operands", found=len(operands))
    return value


def optional_at(operands: Sequence[HostValue], index: int) -> HostValue | None:
    """An operand, or None where it is left out."""
    value = operands[index] if index < len(operands) else MISSING
    return None if value is MISSING else value


def array_at(node: HostNode, operands: Sequence[HostValue], index: int) -> Array:
    """A required operand that is a tensor.

    Raises:
        ModelError: it is left out, or no tensor.
    """
    value = operand_at(node, operands, index)
    if not isinstance(value, np.ndarray):
        raise ModelError("an operand is no tensor", expected="a tensor", found=describe(value))
    return value


def sequence_at(node: HostNode, operands: Sequence[HostValue], index: int) -> list[HostValue]:
    """A required operand that is a sequence.

    Raises:
        ModelError: it is left out, or no sequence.
    """
    value = operand_at(node, operands, index)
    if not isinstance(value, list):
        raise ModelError("an operand is no sequence", expected="a sequence", found=describe(value))
    return value


def integer_at(node: HostNode, operands: Sequence[HostValue], index: int) -> int:
    """A required operand that is one integer.

    Raises:
        ModelError: it is anything else.
    """
    array = array_at(node, operands, index)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise ModelError("an operand is not one integer", expected="one integer", found=describe(array))
    return int(array.reshape(()))


def indices_at(node: HostNode, operands: Sequence[HostValue], index: int) -> Array:
    """A required operand that is a tensor of integers.

    Raises:
        ModelError: it is anything else.
    """
    array = array_at(node, operands, index)
    if array.dtype.kind not in "iu":
        raise ModelError("an operand is no tensor of integers", expected="integers", found=describe(array))
    return array


def axis_within(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        ModelError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise ModelError("axis out of range", expected=f"{-rank} to {rank - 1}", found=axis)
    return axis % rank


def fitting(move: Callable[[], Array], x: HostValue, found: object) -> Array:
    """What a NumPy function gives.

    Raises:
        ExecutionError: extents, axes or positions do not fit.
    """
    try:
        return move()
    except (ValueError, IndexError) as error:
        raise ExecutionError("operands do not fit", expected=f"what fits {describe(x)}", found=found) from error


def describe(value: HostValue) -> str:
    """A value as errors name it."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    return "an empty optional" if value is None else type(value).__name__
