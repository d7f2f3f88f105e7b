"""What a backend is: graph passes of its own, generation rules, and how an instruction becomes a kernel call.

In: a legal graph, then instructions. Out: a graph laid out for the backend, `KernelCall`s for the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from glowstone.graph import Graph, Node
from glowstone.irgen import RuleTable, find_rule
from glowstone.lir import Instruction, Program
from glowstone.ops import Constant, Fused
from glowstone.table import KernelCall


class KernelPlanner(Protocol):
    """The rule of a backend that turns an instruction into a call."""

    def plan(self, instruction: Instruction) -> KernelCall:
        """Key, units, grain, scratch, cost and derived integers, from the instruction alone.

        Raises:
            UnsupportedError: no kernel family takes this operation with these element types.
        """

    def tile(self, instruction: Instruction) -> str:
        """What of the instruction is kept in registers at a time, for people to read; empty where that says nothing."""


class Backend(Protocol):
    """One kind of device."""

    @property
    def name(self) -> str:
        """The word that `glowstone.compile(backend=...)` takes."""

    @property
    def identity(self) -> str:
        """Everything of the backend that decides compiled bytes, as text for cache keys."""

    @property
    def rules(self) -> RuleTable:
        """Generation rules by operator class; an operator with one is legal."""

    @property
    def planner(self) -> KernelPlanner:
        """How instructions become calls."""

    def kernel_texts(self, key: object) -> Mapping[str, str]:
        """Readable forms of a kernel by the ending of a file name (".ll", ".s"); none where there are none."""

    def graph_passes(self) -> Sequence[Callable[[Graph], bool]]:
        """Passes over the legal graph: fusion, layout, packing."""

    def program_passes(self) -> Sequence[Callable[[Program], bool]]:
        """Passes over the low-level program, before memory is planned."""


def is_legal(backend: Backend, node: Node) -> bool:
    """Whether the backend generates the node as it is."""
    operator = node.operator.anchor if isinstance(node.operator, Fused) else node.operator
    needs_no_code = isinstance(operator, Constant) or all(value.known is not None for value in node.results)
    return needs_no_code or find_rule(backend.rules, type(operator)) is not None
