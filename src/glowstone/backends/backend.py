"""What a backend is: which operators are legal, how an instruction becomes a kernel call, and kernels that can be called.

In: a program. Out: `KernelCall`s for the table, and a `KernelLibrary` with the kernels they name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from glowstone.lir.instruction import Instruction
from glowstone.lir.table import KernelCall


class KernelPlanner(Protocol):
    """The rule of a backend that turns an instruction into a call."""

    def plan(self, instruction: Instruction) -> KernelCall:
        """Key, units, grain, scratch, cost and derived integers, from the instruction alone.

        Raises:
            UnsupportedError: no kernel family takes this operation with these element types.
        """


class KernelLibrary(Protocol):
    """Kernels by key, ready to be called."""

    def index_of(self, keys: Sequence[object]) -> list[int]:
        """Kernel indices of the keys; builds those that are missing."""
