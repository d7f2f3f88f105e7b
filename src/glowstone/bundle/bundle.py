"""Ahead of time: a program as one object file and a C header.

In: an encoded program, its kernels' keys, its constants. Out: `<name>.o` with table, kernels, run loop and constants,
and `<name>.h`. The same table and the same kernels as in this process, so the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.target import Target
from glowstone.bundle.argument import Argument
from glowstone.bundle.data_sections import add_data
from glowstone.bundle.header import header_text
from glowstone.errors import InputError, LimitError
from glowstone.table import FIRST_ARGUMENT_BASE, Words

MAX_CONSTANT_BYTES = 1 << 30
"""Code reaches its constants by 32-bit distances."""


@dataclass(frozen=True)
class Bundle:
    """A program to write. Constants are given as parts that follow each other."""

    name: str
    words: Words
    kernels: tuple[KernelKey, ...]
    """By kernel index."""
    constants: Sequence[memoryview]
    plan_constants: Sequence[memoryview]
    arena_bytes: int
    scratch_bytes: int
    """Scratch of one participant: the most that a call asks for."""
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    loop_slots: int = 0
    has_loops: bool = False

    @property
    def base_count(self) -> int:
        return FIRST_ARGUMENT_BASE + len(self.inputs) + len(self.outputs) + self.loop_slots


def write_bundle(folder: Path, bundle: Bundle, target: Target) -> tuple[Path, Path]:
    """Write the object file and the header; returns their paths.

    Raises:
        InputError: the name is not a C identifier.
        LimitError: the constants are too large for one object.
        UnsupportedError: the target's objects are not ELF, or a kernel family lacks something.
        OSError: a file cannot be written.
    """
    # LLVM is imported only when a bundle is made
    from glowstone.backends.cpu.native.bundle_object import BundleCode, emit_bundle_code

    _check(bundle)
    code = BundleCode(
        bundle.name,
        bundle.words,
        bundle.kernels,
        bundle.base_count,
        len(bundle.inputs),
        len(bundle.outputs),
        bundle.arena_bytes,
        bundle.scratch_bytes,
        bundle.has_loops,
    )
    data = {code.constants_symbol: bundle.constants, code.plan_constants_symbol: bundle.plan_constants}
    object_file, header = folder / f"{bundle.name}.o", folder / f"{bundle.name}.h"
    with object_file.open("wb") as stream:
        stream.writelines(add_data(emit_bundle_code(code, target), data))
    header.write_text(header_text(bundle.name, bundle.inputs, bundle.outputs, code.total_arena_bytes))
    return object_file, header


def _check(bundle: Bundle) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", bundle.name):
        raise InputError("the name of a bundle must be a C identifier", found=bundle.name)
    size = sum(part.nbytes for part in [*bundle.constants, *bundle.plan_constants])
    if size > MAX_CONSTANT_BYTES:
        raise LimitError("constants are too large for a bundle", expected=f"at most {MAX_CONSTANT_BYTES}", found=size)
