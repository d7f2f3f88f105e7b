"""What machine the code is for.

In: the host, or text such as "x86_64-unknown-linux-gnu/znver3". Out: `Target`, which every kernel family reads.
Nothing here is measured: equal text means equal code on every machine.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from glowstone.backends.cpu.probe import VectorUnit, probe_vector_unit, stated_vector_unit

DEFAULT_L1_BYTES = 32 * 1024
DEFAULT_L2_BYTES = 512 * 1024
NOMINAL_GIGAHERTZ = 3.0
NOMINAL_BYTES_PER_NANOSECOND = 20.0
FLOAT_BYTES = 4
MANY_REGISTERS = 32


@dataclass(frozen=True)
class Target:
    """A triple, a processor's name and its features ("+avx2,+fma,-avx512f").

    Features beat the name, because virtual machines mask features.
    """

    triple: str
    cpu: str
    features: str = ""

    @staticmethod
    @functools.cache
    def host() -> Target:
        """The machine at hand, as LLVM detects it."""
        import llvmlite.binding as llvm

        features = llvm.get_host_cpu_features()
        flags = ",".join(sorted(f"{'+' if is_there else '-'}{name}" for name, is_there in features.items()))
        return Target(elf_triple(llvm.get_process_triple()), llvm.get_host_cpu_name(), flags)

    @staticmethod
    def parse(text: str) -> Target:
        """The target of "host", "triple/cpu" or "triple/cpu/features".

        Raises:
            ValueError: the text has another form.
        """
        if text == "host":
            return Target.host()
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(parts[:2]):
            raise ValueError(f"target {text!r} is neither 'host' nor 'triple/cpu' nor 'triple/cpu/features'")
        features = parts[2].split(",") if len(parts) == 3 and parts[2] else []
        return Target(parts[0], parts[1], ",".join(sorted(features)))

    @property
    def text(self) -> str:
        """The inverse of `parse`, for cache keys."""
        return f"{self.triple}/{self.cpu}/{self.features}" if self.features else f"{self.triple}/{self.cpu}"

    @functools.cached_property
    def vector_unit(self) -> VectorUnit:
        stated = stated_vector_unit(self.triple, self.features)
        return stated or probe_vector_unit(self.triple, self.cpu, self.features)

    @property
    def vector_bytes(self) -> int:
        """Bytes of one vector register."""
        return self.vector_unit.vector_bytes

    @property
    def register_count(self) -> int:
        """Number of vector registers."""
        return self.vector_unit.register_count

    @property
    def has_fma(self) -> bool:
        return self.vector_unit.has_fma

    @property
    def float_lanes(self) -> int:
        """Floats in one vector register."""
        return self.vector_bytes // FLOAT_BYTES

    @property
    def channel_block(self) -> int:
        """Channels per block of the blocked layout."""
        return 16 if self.vector_bytes >= 64 else 8

    @property
    def block_registers(self) -> int:
        """How many blocks of `channel_block` floats the vector registers hold together."""
        return self.register_count * self.vector_bytes // (self.channel_block * FLOAT_BYTES)

    @property
    def wants_machine_scheduling(self) -> bool:
        """Whether LLVM may reorder instructions: with 32 registers it gathers broadcasts until they spill."""
        return self.register_count < MANY_REGISTERS

    @property
    def l1_bytes(self) -> int:
        """Assumed size of the first-level data cache."""
        return DEFAULT_L1_BYTES

    @property
    def l2_bytes(self) -> int:
        """Assumed size of the second-level cache."""
        return DEFAULT_L2_BYTES

    @property
    def flops_per_nanosecond(self) -> float:
        """Nominal float32 peak: two vector units, two operations where multiply and add are fused."""
        return self.float_lanes * 2 * (2 if self.has_fma else 1) * NOMINAL_GIGAHERTZ

    def cost(self, flops: float, bytes_moved: float) -> int:
        """Estimated nanoseconds of work that does `flops` operations and touches `bytes_moved` bytes."""
        return int(max(flops / self.flops_per_nanosecond, bytes_moved / NOMINAL_BYTES_PER_NANOSECOND)) + 1


def elf_triple(triple: str) -> str:
    """The triple with ELF objects, which the loader maps on every system; calls stay as the system has them."""
    uses_other_format = "apple" in triple or "windows" in triple
    return f"{triple}-elf" if uses_other_format and not triple.endswith("-elf") else triple
