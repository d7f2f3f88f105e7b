"""Operators: the one place where an operator of the high-level representation is defined.

An operator is a frozen dataclass whose fields are its attributes. Names, operand rules, type rule, reference meaning,
decomposition and samples stand together in the class; everything else (printing, parsing, hashing, generic tests,
documentation) derives from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from glowstone.errors import ModelError
from glowstone.types import ElementType, TensorType

if TYPE_CHECKING:
    from glowstone.graph.builder import Builder
    from glowstone.graph.graph import Graph, Value

Array = np.ndarray[Any, np.dtype[Any]]

KNOWN_ELEMENTS_LIMIT = 1024
"""The host computes values of at most this many elements."""
ULP_BOUND = 4.0
"""Units in the last place that results of operators may be off, if these state no other bound."""


@dataclass(frozen=True)
class Operand:
    """What an operand may be. `elements` None allows every element type."""

    name: str
    elements: frozenset[ElementType] | None = None
    optional: bool = False
    variadic: bool = False
    host: bool = False
    """Its value decides a shape, so the host must know it."""


@dataclass(frozen=True)
class Sample:
    """A valid case: attributes, and operands as arrays (or None where left out)."""

    operator: Operator
    operands: tuple[Array | None, ...]
    tolerance: float = 1e-5
    """Largest difference from an independent reference, relative to the largest value."""


@dataclass(frozen=True)
class ErrorSample:
    """An invalid case: operand types (with values where given) and a part of the message expected."""

    operator: Operator
    operands: tuple[Array | TensorType | None, ...]
    message: str


@dataclass(frozen=True, eq=False)
class Operator:
    """Base of all operators. See `docs/adding-an-operator.md`.

    Operators are equal if they mean the same, bit for bit: 0.0 is not -0.0 and not 0, NaN is NaN.
    """

    operands: ClassVar[tuple[Operand, ...]] = ()
    result_names: ClassVar[tuple[str, ...]] = ("y",)
    onnx: ClassVar[str | None] = None
    """The ONNX operator of the same meaning, with the opset that the definition follows: "Conv-11"."""
    commutative: ClassVar[bool] = False
    moves_no_data: ClassVar[bool] = False
    """The result is the first operand's elements in row-major order under another shape."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """Graphs that are executed as a part of the operator; see `ops/control.py`."""
        return ()

    def specialized(self, operands: Sequence[Value | None]) -> Operator:
        """The operator for these operands: one with bodies has them built anew for the operands' types.

        Raises:
            GlowstoneError: a body refuses these types.
        """
        return self

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        """Result types from operand types (and known values of host operands).

        Raises:
            GlowstoneError: operands that do not fit, with what was expected and found.
        """
        raise NotImplementedError

    def reference(self, *operands: Any) -> Any:
        """The meaning, in NumPy. One array, or a tuple where there are several results."""
        raise NotImplementedError

    def ulp_bound(self, *operands: Value | None) -> float:
        """How far float results of a backend may be from `reference`, in units of the last place.

        The unit is that of the largest number among the floats of operands and results; of elementwise operators, of
        the largest at the element's own position. Operators that sum say how the length of a sum enters.
        """
        return ULP_BOUND

    def decompose(self, builder: Builder, *operands: Any) -> Value | tuple[Value, ...] | None:
        """The same results from simpler operators; None for a primitive."""
        return None

    def known(self, *operands: Value | None) -> tuple[Array | None, ...] | None:
        """Values of the results that the host can compute: by default where all operands are known."""
        arrays: list[Array | None] = []
        for operand in operands:
            if operand is None:
                arrays.append(None)
            elif operand.known is None:
                return None
            else:
                arrays.append(operand.known)
        return self.evaluate(*arrays)

    def evaluate(self, *arrays: Array | None) -> tuple[Array, ...]:
        """The results of `reference`. What is no number, or beyond its type's range, is data: there is no warning."""
        with np.errstate(all="ignore"):
            return as_tuple(self.reference(*arrays))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        """Valid cases that every generic test runs."""
        return ()

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        """Invalid cases with the message expected."""
        return ()

    def attributes(self) -> dict[str, Any]:
        """Field values by name, in order of definition."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash((type(self), self._identity()))

    def _identity(self) -> tuple[object, ...]:
        return tuple(map(_identity, self.attributes().values()))

    def check_operands(self, operands: Sequence[Value | None]) -> None:
        """Check number and element types of the operands.

        Raises:
            ModelError: too few or too many operands, or an element type that the operator does not take.
        """
        declared = self.operands
        variadic = bool(declared) and declared[-1].variadic
        least = sum(not (operand.optional or operand.variadic) for operand in declared)
        if len(operands) < least or (len(operands) > len(declared) and not variadic):
            wanted = f"{least} or more" if variadic else f"{least} to {len(declared)}"
            raise ModelError(
                f"{self.name} has the wrong number of operands",
                operator=self.name,
                expected=wanted,
                found=len(operands),
            )
        for index, value in enumerate(operands):
            rule = declared[min(index, len(declared) - 1)]
            if value is None:
                if not rule.optional:
                    raise ModelError(f"{self.name} lacks operand {rule.name}", operator=self.name)
            elif rule.elements is not None and value.type.element not in rule.elements:
                raise ModelError(
                    f"{self.name} does not take this element type for {rule.name}",
                    operator=self.name,
                    expected=", ".join(sorted(str(element) for element in rule.elements)),
                    found=value.type.element,
                )


OPERATORS: dict[str, type[Operator]] = {}
"""Every operator by its name, for the parser and the generic tests."""

OperatorType = TypeVar("OperatorType", bound=Operator)


@dataclass_transform(eq_default=False, frozen_default=True)
def operator(kind: type[OperatorType]) -> type[OperatorType]:
    """Class decorator: make a frozen dataclass of it and enter it in `OPERATORS`."""
    frozen = dataclass(frozen=True, eq=False)(kind)  # equality is `Operator`'s
    if OPERATORS.setdefault(frozen.__name__, frozen) is not frozen:
        raise AssertionError(f"operator {frozen.__name__} is defined twice")
    return frozen


def _identity(value: object) -> object:
    """What stands for a field in comparisons."""
    if isinstance(value, float):
        return repr(float(value))
    return (bool, value) if isinstance(value, bool) else value


def sum_bound(count: int) -> float:
    """`Operator.ulp_bound` of sums of this many terms, in any order: their roundings go both ways."""
    return float(ULP_BOUND + count**0.5)


def as_tuple(results: Any) -> tuple[Any, ...]:
    """What `reference` or `decompose` returned, as a tuple."""
    return results if isinstance(results, tuple) else (results,)
