"""The run loop's object file for every system and processor."""

from __future__ import annotations

import pytest

from glowstone.backends.cpu.native.emit import emit_run_loop
from glowstone.backends.cpu.native.layout import HELP_SYMBOL, RUN_SHARED_SYMBOL, RUN_SYMBOL, SPIN_SYMBOL
from glowstone.backends.cpu.target import Target, elf_triple
from glowstone.runtime.elf import Machine, parse_object
from glowstone.runtime.relocate import DIRECT, THROUGH_TABLE

TARGETS = {
    ("x86_64-unknown-linux-gnu", "x86-64"): Machine.X86_64,
    ("x86_64-unknown-linux-gnu", "sapphirerapids"): Machine.X86_64,
    ("x86_64-apple-darwin22.1.0", "core2"): Machine.X86_64,
    ("x86_64-pc-windows-msvc", "znver3"): Machine.X86_64,
    ("aarch64-unknown-linux-gnu", "generic"): Machine.AARCH64,
    ("aarch64-unknown-linux-gnu", "neoverse-n1"): Machine.AARCH64,
    ("arm64-apple-darwin22.1.0", "apple-m1"): Machine.AARCH64,
}


@pytest.mark.parametrize(("triple", "cpu"), TARGETS)
def test_it_can_be_loaded(triple, cpu):
    parsed = parse_object(emit_run_loop(Target(elf_triple(triple), cpu)))
    assert parsed.machine is TARGETS[triple, cpu]
    known = DIRECT[parsed.machine].keys() | THROUGH_TABLE[parsed.machine].keys()
    assert {entry.kind for section in parsed.sections.values() for entry in section.relocations} <= known
    outside = [symbol.name for symbol in parsed.symbols if symbol.section is None and symbol.is_global]
    assert outside == []
    exported = {symbol.name for symbol in parsed.symbols if symbol.is_global}
    assert exported == {HELP_SYMBOL, RUN_SHARED_SYMBOL, RUN_SYMBOL, SPIN_SYMBOL}


def test_linux_triples_stay_as_they_are():
    assert elf_triple("x86_64-unknown-linux-gnu") == "x86_64-unknown-linux-gnu"
    assert elf_triple("x86_64-pc-windows-msvc-elf") == "x86_64-pc-windows-msvc-elf"
