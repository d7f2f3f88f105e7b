"""Kernel families: how an instruction becomes a call, and how the code behind a call is generated.

In: instructions. Out: `KernelCall`s with `KernelKey`s, and function bodies for the keys. Equal keys share one kernel.
"""

from __future__ import annotations

import enum
import hashlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from glowstone.backends.cpu.target import Target
from glowstone.errors import UnsupportedError
from glowstone.lir.buffer import View
from glowstone.lir.instruction import Instruction
from glowstone.lir.operation import Operation
from glowstone.table import CallLayout, KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

SYMBOL_DIGITS = 12


class InnerStride(enum.Enum):
    """What is compiled in about the stride of an operand's last axis."""

    ZERO = 0
    ONE = 1
    ANY = 2

    @staticmethod
    def of(view: View) -> InnerStride:
        """Of the view's last axis; a scalar counts as ONE."""
        stride = view.strides[-1] if view.rank else 1
        return InnerStride(stride) if stride in (0, 1) else InnerStride.ANY

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OperandKey:
    """What is compiled in about one operand."""

    element: ElementType
    rank: int
    inner: InnerStride = InnerStride.ONE

    @staticmethod
    def of(view: View) -> OperandKey:
        return OperandKey(view.element, view.rank, InnerStride.of(view))


@dataclass(frozen=True)
class KernelKey:
    """All that a kernel's code depends on besides the target. `integers` is the number of run-time integers."""

    operation: Operation
    operands: tuple[OperandKey, ...]
    integers: int = 0
    variant: tuple[int | str, ...] = ()

    @staticmethod
    def of(instruction: Instruction, variant: tuple[int | str, ...] = ()) -> KernelKey:
        operands = tuple(OperandKey.of(view) for view in instruction.operands)
        return KernelKey(instruction.operation, operands, len(instruction.integers), variant)

    @property
    def layout(self) -> CallLayout:
        """Where the words of the call stand."""
        return CallLayout(tuple(operand.rank for operand in self.operands))

    @property
    def symbol(self) -> str:
        """Name of the function, the same in every process."""
        digest = hashlib.sha256(repr(self).encode()).hexdigest()[:SYMBOL_DIGITS]
        return f"glow_{self.operation.name.lower()}_{digest}"


class KernelFamily(ABC):
    """The generator of all kernels of one operation. Stateless."""

    @abstractmethod
    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        """Key (a `KernelKey`), units, grain, scratch, cost and derived integers, from the instruction alone.

        Raises:
            UnsupportedError: the family has no kernel for these element types.
        """

    def tile(self, instruction: Instruction, target: Target) -> str:
        """What one pass over the reduction keeps in registers, for people to read; empty where there is no tile."""
        return ""

    @abstractmethod
    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        """Emit the function body; `emitter` stands after the entry and returns by itself."""


FamilyClass = TypeVar("FamilyClass", bound=type[KernelFamily])
_FAMILIES: dict[type[Operation], KernelFamily] = {}
KERNELS_PACKAGE = "glowstone.backends.cpu.kernels"


def emits(*operations: type[Operation]) -> Callable[[FamilyClass], FamilyClass]:
    """Class decorator: this family generates the kernels of the operations."""

    def register(family: FamilyClass) -> FamilyClass:
        for kind in operations:
            if kind in _FAMILIES:
                raise AssertionError(f"two kernel families for {kind.__name__}")
            _FAMILIES[kind] = family()
        return family

    return register


def families() -> dict[type[Operation], KernelFamily]:
    """Every family by its operation."""
    importlib.import_module(KERNELS_PACKAGE)  # its modules register themselves
    return _FAMILIES


def family_for(operation: Operation) -> KernelFamily:
    """The family of an operation.

    Raises:
        UnsupportedError: there is none.
    """
    family = families().get(type(operation))
    if family is None:
        raise UnsupportedError("no kernel family for this operation", operator=operation.name)
    return family


def require_elements(instruction: Instruction, *allowed: ElementType) -> None:
    """Check that all operands have one of the element types.

    Raises:
        UnsupportedError: one has another type.
    """
    found = {view.element for view in instruction.operands}
    if not found <= set(allowed):
        raise UnsupportedError(
            "no kernel for these element types",
            operator=instruction.operation.name,
            expected=", ".join(map(str, allowed)),
            found=", ".join(sorted(map(str, found))),
        )


def require_channel_block(instruction: Instruction, target: Target) -> None:
    """Check that the blocked output has the target's number of lanes.

    Raises:
        UnsupportedError: the layout was chosen for another target.
    """
    lanes = instruction.operands[0].shape[-1]
    if lanes != target.channel_block:
        raise UnsupportedError(
            "no kernel for this channel block",
            operator=instruction.operation.name,
            expected=target.channel_block,
            found=lanes,
        )


@dataclass(frozen=True)
class CpuPlanner:
    """The `KernelPlanner` of this backend."""

    target: Target

    def plan(self, instruction: Instruction) -> KernelCall:
        """See `KernelPlanner.plan`."""
        return family_for(instruction.operation).plan(instruction, self.target)

    def tile(self, instruction: Instruction) -> str:
        """See `KernelFamily.tile`."""
        return family_for(instruction.operation).tile(instruction, self.target)
