"""What an instruction does: operations, declared once.

An operation is a frozen dataclass; its fields are everything static about it (they go into the kernel's key). What
varies from shape to shape reaches it through operands (extents, strides) and `integers`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.strides import has_vector_stride

Array = np.ndarray[Any, np.dtype[Any]]


class Access(enum.Enum):
    """How an instruction uses an operand. The value is its mark in IR text."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"

    @property
    def reads(self) -> bool:
        return self is not Access.OUT

    @property
    def writes(self) -> bool:
        return self is not Access.IN


@dataclass(frozen=True)
class Operation:
    """Base of all operations.

    Subclasses give `accesses` (outputs first, then inputs), `verify` and `interpret`.
    """

    data_parallel: ClassVar[bool] = False
    """Every output element depends only on the input elements at its own position (after broadcasting)."""
    moves_data: ClassVar[bool] = False
    """Outputs hold copies of inputs, bit for bit."""
    ulp_bound: ClassVar[float] = 0.0
    """How far a float result of a backend may be from `interpret`, in units of the last place of the largest value
    of the output; 0 means bit for bit."""
    integer_names: ClassVar[tuple[str, ...]] = ()
    """Names of the run-time integers, in the order of `Instruction.integers`; a trailing name may repeat."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def accesses(self) -> tuple[Access, ...]:
        """One access per operand."""
        raise NotImplementedError

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """Pairs (output operand, input operand) that may be exactly the same view."""
        return ()

    def accepts(self, operand: int, view: View) -> bool:
        """Whether the operand may have this view's strides.

        Every instruction keeps to it (the verifier checks), so kernels may rely on it and passes may use it freely.
        """
        return view.is_contiguous

    def is_fast(self, operand: int, view: View) -> bool:
        """Whether kernels take the operand in vectors with this view's strides. No pass gives that up."""
        return has_vector_stride(view)

    def multiply_adds(self, views: Sequence[View]) -> int:
        """How many products the operation adds up, by its definition; 0 for one that is not made of sums of products.

        An algorithm that needs fewer counts as faster, as is usual.
        """
        return 0

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        """Check ranks, extents and element types.

        Raises:
            ValueError: something does not fit; the message says what.
        """
        raise NotImplementedError

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        """Compute into the output arrays. All are views of the program's memory."""
        raise NotImplementedError


OPERATIONS: dict[str, type[Operation]] = {}
"""Every operation by its name, for the parser and the completeness tests."""

OperationType = TypeVar("OperationType", bound=Operation)


@dataclass_transform(frozen_default=True)
def operation(kind: type[OperationType]) -> type[OperationType]:
    """Class decorator: make a frozen dataclass of it and enter it in `OPERATIONS`."""
    frozen = dataclass(frozen=True)(kind)
    if OPERATIONS.setdefault(frozen.__name__, frozen) is not frozen:
        raise AssertionError(f"operation {frozen.__name__} is defined twice")
    return frozen


def require(condition: bool, message: str) -> None:
    """Raise ValueError(message) unless the condition holds; for `verify`."""
    if not condition:
        raise ValueError(message)
