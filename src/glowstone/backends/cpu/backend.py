"""The CPU backend: machine code from LLVM for a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from glowstone.backends.backend import KernelPlanner
from glowstone.backends.cpu.irgen_rules import CPU_RULES
from glowstone.backends.cpu.kernel_family import CpuPlanner, KernelKey
from glowstone.backends.cpu.passes.pipeline import backend_passes, program_passes
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import Tuning
from glowstone.graph import Graph
from glowstone.irgen import RuleTable
from glowstone.lir import Program


@dataclass(frozen=True)
class CpuBackend:
    """See `Backend`."""

    target: Target
    exact: bool = False
    """Strict numerics: no algorithm that sums other products than the specification's."""
    tuning: Tuning = field(default_factory=Tuning)
    name: str = "cpu"

    @property
    def identity(self) -> str:
        return f"{self.name}/{self.target.text}/{self.exact}/{self.tuning.digest}"

    @property
    def rules(self) -> RuleTable:
        return CPU_RULES

    @property
    def planner(self) -> KernelPlanner:
        return CpuPlanner(self.target)

    def kernel_texts(self, key: object) -> Mapping[str, str]:
        from glowstone.backends.cpu.compile import assembly, llvm_ir  # the door to LLVM

        assert isinstance(key, KernelKey)
        return {".ll": llvm_ir(key, self.target), ".s": assembly(key, self.target)}

    def graph_passes(self) -> Sequence[Callable[[Graph], bool]]:
        return backend_passes(self.target, self.exact, self.tuning)

    def program_passes(self) -> Sequence[Callable[[Program], bool]]:
        return program_passes(self.target)
