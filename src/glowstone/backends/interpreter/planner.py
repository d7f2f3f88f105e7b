"""How the interpreter takes an instruction: its key holds all that decoding a call needs.

In: instructions. Out: `KernelCall`s with `InterpreterKey`s; every operation is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowstone.lir.instruction import Instruction
from glowstone.lir.operation import Operation
from glowstone.table import KernelCall
from glowstone.types import ElementType


@dataclass(frozen=True)
class InterpreterKey:
    """The operation, element type and rank of each operand, and the number of run-time integers."""

    operation: Operation
    elements: tuple[ElementType, ...]
    ranks: tuple[int, ...]
    integers: int


class InterpreterPlanner:
    """The interpreter's `KernelPlanner`: one unit per instruction, no scratch."""

    def plan(self, instruction: Instruction) -> KernelCall:
        """The call of an instruction."""
        operation = instruction.operation
        elements = tuple(view.element for view in instruction.operands)
        ranks = tuple(view.rank for view in instruction.operands)
        return KernelCall(InterpreterKey(operation, elements, ranks, len(instruction.integers)), units=1)

    def tile(self, instruction: Instruction) -> str:
        """None: it works on whole arrays."""
        return ""


class InterpreterLibrary:
    """The interpreter's `KernelLibrary`: keys in order of first mention; kernel i is `keys[i]`."""

    def __init__(self) -> None:
        self.keys: list[InterpreterKey] = []
        self._indices: dict[object, int] = {}

    def index_of(self, keys: Sequence[object]) -> list[int]:
        """Kernel indices of the keys, entering those that are new."""
        result = []
        for key in keys:
            assert isinstance(key, InterpreterKey)
            if key not in self._indices:
                self._indices[key] = len(self.keys)
                self.keys.append(key)
            result.append(self._indices[key])
        return result
