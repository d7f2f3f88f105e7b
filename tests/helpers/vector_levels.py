"""Levels of vector instructions: targets that force them, and whether this machine runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from glowstone.backends.cpu.target import Target, elf_triple

X86_64 = "x86_64-unknown-linux-gnu"
RISCV = "riscv64-unknown-linux-gnu/generic-rv64/+a,+c,+d,+f,+m"


@dataclass(frozen=True)
class VectorLevel:
    """A target with a name, and the features of a processor that can run it; None where that is another processor."""

    name: str
    target_text: str
    needs: frozenset[str] | None = None

    @property
    def runs_here(self) -> bool:
        """Whether this machine has all that the level's code uses."""
        if self.needs is None or not llvm.get_process_triple().startswith(self.target_text.partition("-")[0]):
            return False
        return all(llvm.get_host_cpu_features().get(feature) for feature in self.needs)

    @property
    def target(self) -> Target:
        """The target that forces the level; calls are as this system has them where the code runs."""
        target = Target.parse(self.target_text)
        if not self.runs_here:
            return target
        return Target(elf_triple(llvm.get_process_triple()), target.cpu, target.features)


SSE4_2 = frozenset({"sse4.2", "popcnt"})
AVX2 = SSE4_2 | {"avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = (
    VectorLevel("AVX-512", f"{X86_64}/x86-64-v4", AVX512),
    VectorLevel("AVX2", f"{X86_64}/x86-64-v3", AVX2),
    VectorLevel("SSE4.2", f"{X86_64}/x86-64-v2", SSE4_2),
    VectorLevel("NEON", "aarch64-unknown-linux-gnu/generic", frozenset({"neon"})),
    VectorLevel("RISC-V", RISCV),
    VectorLevel("RISC-V vectors", f"{RISCV},+v"),
)
"""The best first, of each processor."""


def best_level(levels: Sequence[VectorLevel] = LEVELS) -> VectorLevel:
    """The first level that this machine runs."""
    return next(level for level in levels if level.runs_here)
