"""The table of import rules: one for each form of an ONNX operator, with the opsets it holds for."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from glowstone.errors import ModelError, UnknownValueError, UnsupportedError
from glowstone.graph import Operator, Tensor, Value
from glowstone.graph.operator import Array
from glowstone.importer.imported import Imported, ValueSequence
from glowstone.types import TensorType

if TYPE_CHECKING:
    from glowstone.importer.scope import Scope

Kind = TypeVar("Kind")
Default = TypeVar("Default")
Rule = Callable[["OnnxNode"], "Imported | tuple[Imported, ...]"]
RuleForm = TypeVar("RuleForm", bound=Rule)
"""A rule that gives one value stays one after it is registered."""
DEFAULT_DOMAIN = ""
DEFAULT_DOMAIN_ALIAS = "ai.onnx"


@dataclass(frozen=True)
class Form:
    """A rule and the opsets it holds for, `until` included."""

    since: int
    until: float
    rule: Rule


RULES: dict[tuple[str, str], list[Form]] = {}
"""Forms by domain and ONNX operator name; the first in force is the one that applies."""


def canonical_domain(domain: str) -> str:
    """One spelling per domain: the default one has two in files."""
    return DEFAULT_DOMAIN if domain == DEFAULT_DOMAIN_ALIAS else domain


SEQUENCE_RULES: set[Rule] = set()
"""Rules that take sequences."""


def imports(
    name: str, since: int = 1, domain: str = DEFAULT_DOMAIN, until: float = math.inf, sequences: bool = False
) -> Callable[[RuleForm], RuleForm]:
    """Register a rule for an operator of a domain, for that domain's opsets from `since` to `until`.

    Of several rules for an opset that applies which began last, and of those the one that ends first. Operands are
    values; where `sequences`, they may be sequences of known length, too.
    """

    def register(rule: RuleForm) -> RuleForm:
        forms = RULES.setdefault((domain, name), [])
        forms.append(Form(since, until, rule))
        forms.sort(key=lambda form: (-form.since, form.until))
        if sequences:
            SEQUENCE_RULES.add(rule)
        return rule

    return register


def rule_for(name: str, opset: int, domain: str = DEFAULT_DOMAIN) -> Rule | None:
    """The rule in force at an opset of a domain; None where there is none."""
    return next((form.rule for form in RULES.get((domain, name), ()) if form.since <= opset <= form.until), None)


def takes_sequences(rule: Rule) -> bool:
    """Whether operands of a rule may be sequences."""
    return rule in SEQUENCE_RULES


@dataclass(frozen=True)
class BodyInput:
    """An input of a body: what the file calls it, its type, and whether it follows from a symbolic dimension."""

    name: str
    type: TensorType
    dynamic: bool


class OnnxBody(ABC):
    """What a rule sees of an attribute that is a graph."""

    @property
    @abstractmethod
    def input_names(self) -> list[str]:
        """Names of the declared inputs."""

    @property
    @abstractmethod
    def input_ranks(self) -> list[int | None]:
        """Their declared ranks; None where one is not declared."""

    @abstractmethod
    def inline(self, begin: Callable[[Scope], None] | None = None) -> tuple[Value, ...]:
        """Make a body a part of the graph around; returns its outputs.

        Args:
            begin: called before the first node of the body, to define its inputs.
        """

    @abstractmethod
    def build(
        self, inputs: Sequence[BodyInput], begin: Callable[[Scope], None] | None = None, scope: Scope | None = None
    ) -> Scope:
        """A graph of the body, in a scope of its own: first the inputs given, then what it captured.

        Args:
            inputs: in this order.
            begin: called before the first node of the body, to define further names or outputs.
            scope: the scope around, where not that of the node.
        """


class OnnxNode:
    """What a rule sees of a node: operands as values, attributes as Python values, and the builder."""

    def __init__(
        self,
        scope: Scope,
        kind: str,
        name: str,
        operands: tuple[Value | None, ...],
        attributes: dict[str, Any],
        opset: int,
        result_count: int = 1,
    ) -> None:
        self.scope = scope
        self.builder = scope.builder
        self.kind = kind
        self.name = name
        self.operands = operands
        self.attributes = attributes
        self.opset = opset
        self.result_count = result_count

    def changed(
        self, *, operands: tuple[Value | None, ...] | None = None, opset: int | None = None, **attributes: Any
    ) -> OnnxNode:
        """The same node with other operands, in the form of another opset, or with further attributes."""
        other = copy.copy(self)
        other.operands = self.operands if operands is None else operands
        other.opset = self.opset if opset is None else opset
        other.attributes = {**self.attributes, **attributes}
        return other

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

    def with_operands(self, *operands: Value | None) -> OnnxNode:
        """The same node, read as if it had these operands."""
        return OnnxNode(self.scope, self.kind, self.name, operands, self.attributes, self.opset, self.result_count)

    def sequence(self, index: int) -> ValueSequence:
        """A required operand that is a sequence.

        Raises:
            UnsupportedError: it is none whose length is known.
        """
        value: Imported | None = self.optional(index)
        if not isinstance(value, ValueSequence):
            raise UnsupportedError("an operand is no sequence of known length")
        return value

    def emit(self, operator: Operator, *operands: Value | None) -> Value:
        return self.builder.emit(operator, *operands)

    def constant(self, index: int, name: str) -> Array | None:
        """The array of an operand that must not depend on inputs; None where it is left out.

        Raises:
            UnknownValueError: it depends on data that arrives with a call, or follows from a symbolic dimension.
        """
        value = self.optional(index)
        if value is None:
            return None
        if value.known is None:
            raise UnknownValueError(f"operand {name} depends on input data", value=value, is_fixed=True)
        if value.dynamic:
            raise UnknownValueError(f"operand {name} follows from a symbolic dimension", value=value, is_fixed=True)
        return value.known

    def integers(self, index: int, name: str) -> tuple[int, ...] | None:
        """`constant` as a tuple of integers."""
        array = self.constant(index, name)
        if array is not None and array.dtype.kind not in "iu":
            raise ModelError(f"operand {name} has the wrong element type", expected="integers", found=array.dtype)
        return None if array is None else tuple(int(number) for number in array.ravel())

    def integer(self, name: str, default: int) -> int:
        """An attribute of kind INT. This and the next raise ModelError for an attribute of another kind."""
        return self._attribute(name, int, default)

    def optional_integer(self, name: str) -> int | None:
        return self._attribute(name, int, None)

    def number(self, name: str, default: float) -> float:
        """An attribute of kind FLOAT."""
        return self._attribute(name, float, default)

    def text(self, name: str, default: str) -> str:
        """An attribute of kind STRING."""
        return self._attribute(name, str, default)

    def tensor(self, name: str) -> Tensor | None:
        """An attribute of kind TENSOR."""
        return self._attribute(name, Tensor, None)

    def body(self, name: str) -> OnnxBody:
        """A required attribute of kind GRAPH.

        Raises:
            ModelError: it is missing.
        """
        body: OnnxBody | None = self._attribute(name, OnnxBody, None)  # type: ignore[type-abstract]
        if body is None:
            raise ModelError(f"attribute {name} is missing", expected="a graph")
        return body

    def flag(self, name: str) -> bool:
        """An attribute of kind INT that means yes where it is not 0; no where it is left out."""
        return bool(self.integer(name, 0))

    def integer_list(self, name: str) -> tuple[int, ...] | None:
        """An attribute of kind INTS."""
        return self._list(name, int)

    def number_list(self, name: str) -> tuple[float, ...] | None:
        """An attribute of kind FLOATS."""
        return self._list(name, float)

    def text_list(self, name: str) -> tuple[str, ...] | None:
        """An attribute of kind STRINGS."""
        return self._list(name, str)

    def _list(self, name: str, kind: type[Kind]) -> tuple[Kind, ...] | None:
        values: tuple[Any, ...] | None = self._attribute(name, tuple, None)
        if values is not None and not all(issubclass(found, kind) for found in set(map(type, values))):
            raise self._wrong_kind(name, f"a list of {kind.__name__}")
        return values

    def _attribute(self, name: str, kind: type[Kind], default: Default) -> Kind | Default:
        if name not in self.attributes:
            return default
        value = self.attributes[name]
        if not isinstance(value, kind):
            raise self._wrong_kind(name, kind.__name__)
        return value

    def _wrong_kind(self, name: str, expected: str) -> ModelError:
        return ModelError(f"attribute {name} has the wrong kind", expected=expected, found=repr(self.attributes[name]))

    def refuse(self, attribute: str, expected: object) -> UnsupportedError:
        """An error about an attribute's value."""
        return UnsupportedError(
            f"attribute {attribute} has a value that is not supported",
            expected=expected,
            found=self.attributes.get(attribute),
        )

    def refuse_operand(self, name: str) -> UnsupportedError:
        """An error about an optional operand that is given."""
        return UnsupportedError(f"operand {name} is not supported", expected="it is left out", found="it is given")
