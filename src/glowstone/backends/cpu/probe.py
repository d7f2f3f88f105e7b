"""The vector registers of a target.

Where the features say it, as those of a detected host do, they are read; else LLVM, which knows the features behind
every processor's name, is asked: by compiling one multiply-add and reading its assembly.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

PROBE = """
target triple = "{triple}"
declare <16 x float> @llvm.fmuladd.v16f32(<16 x float>, <16 x float>, <16 x float>)
define void @probe(ptr %p, ptr %q) "min-legal-vector-width"="512" {{
  %a = load <16 x float>, ptr %p
  %b = load <16 x float>, ptr %q
  %r = call <16 x float> @llvm.fmuladd.v16f32(<16 x float> %a, <16 x float> %b, <16 x float> %a)
  store <16 x float> %r, ptr %p
  ret void
}}
"""


@dataclass(frozen=True)
class VectorUnit:
    """Bytes of a vector register, number of them, and whether multiply and add are fused."""

    vector_bytes: int
    register_count: int
    has_fma: bool


AVX512 = VectorUnit(64, 32, True)
NARROWEST = VectorUnit(16, 16, False)
NEON = VectorUnit(16, 32, True)
AARCH64 = ("aarch64", "arm64")
RISCV = "riscv64"
RISCV_REGISTERS = 32
_FUSED = re.compile(r"\bv?f(n?m(add|la|acc)|mla)", re.IGNORECASE)
_WIDE_REGISTER, _MIDDLE_REGISTER = re.compile(r"%zmm\d"), re.compile(r"%ymm\d")


def stated_vector_unit(triple: str, features: str) -> VectorUnit | None:
    """The vector unit that triple and features ("+avx2,-avx512f") tell without LLVM, or None."""
    if triple.startswith(AARCH64):
        return NEON
    flags = {feature[1:]: feature[0] == "+" for feature in features.split(",") if feature}
    if not triple.startswith("x86_64") or not {"avx512f", "avx", "fma"} <= set(flags):
        return None
    if flags["avx512f"]:
        return AVX512
    return VectorUnit(32, 16, flags["fma"]) if flags["avx"] else NARROWEST


@functools.cache
def probe_vector_unit(triple: str, cpu: str, features: str) -> VectorUnit:
    """The vector unit of the target.

    Raises:
        ValueError: LLVM does not know the triple.
    """
    from glowstone.backends.cpu.machine import create_target_machine, parse_module

    machine = create_target_machine(triple, cpu, features)
    assembly = machine.emit_assembly(parse_module(PROBE.format(triple=triple)))
    has_fma = _FUSED.search(assembly) is not None
    if _WIDE_REGISTER.search(assembly):
        return AVX512
    if _MIDDLE_REGISTER.search(assembly):
        return VectorUnit(32, 16, has_fma)
    if triple.startswith(AARCH64):
        return NEON
    if triple.startswith(RISCV):
        return VectorUnit(NARROWEST.vector_bytes, RISCV_REGISTERS, has_fma)
    return VectorUnit(NARROWEST.vector_bytes, NARROWEST.register_count, has_fma)
