"""The interpreter as a `Backend`: everything stays in the plain layout, nothing is fused before generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glowstone.backends.backend import KernelPlanner
from glowstone.backends.interpreter.planner import InterpreterPlanner
from glowstone.graph import Graph
from glowstone.irgen import RULES, RuleTable
from glowstone.lir import Program


@dataclass(frozen=True)
class InterpreterBackend:
    """See `Backend`. Generates with the rules that hold for every backend."""

    name: str = "interpreter"

    @property
    def identity(self) -> str:
        return self.name

    @property
    def rules(self) -> RuleTable:
        return RULES

    @property
    def planner(self) -> KernelPlanner:
        return InterpreterPlanner()

    def kernel_texts(self, key: object) -> Mapping[str, str]:
        return {}

    def graph_passes(self) -> Sequence[Callable[[Graph], bool]]:
        return ()

    def program_passes(self) -> Sequence[Callable[[Program], bool]]:
        return ()
