"""Maps object files of machine code into this process, without a linker and without LLVM.

In: a relocatable ELF object that refers to nothing outside itself. Out: `LoadedObject`: addresses by symbol. Memory is
written first and made executable afterwards, never both.
"""

from __future__ import annotations

import platform
import struct
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from glowstone.runtime import operating_system as system
from glowstone.runtime.elf import Machine, ObjectFile, Relocation, Section, SectionFlag, Symbol, parse_object
from glowstone.runtime.relocate import DIRECT, THROUGH_TABLE

ADDRESS_BYTES = 8
MAX_BYTES = 1 << 30
"""Largest mapping: relative addresses have 32 bits."""
_HOST_MACHINES = {
    "x86_64": Machine.X86_64,
    "amd64": Machine.X86_64,
    "aarch64": Machine.AARCH64,
    "arm64": Machine.AARCH64,
}
_PROTECTIONS = (
    system.PROTECTION_READ | system.PROTECTION_EXECUTE,
    system.PROTECTION_READ,
    system.PROTECTION_READ | system.PROTECTION_WRITE,
)
"""Protections of the parts of a mapping, in the order in which they stand in memory."""
_CODE, _CONSTANTS, _DATA = range(3)


class LoadedObject:
    """Code in memory. The mapping lives as long as this object, which must outlive every call into it."""

    def __init__(self, address: int, size: int, symbols: Mapping[str, int]) -> None:
        self.symbols = symbols
        self._finalizer = weakref.finalize(self, system.unmap_memory, address, size)
        # At exit threads may still be inside; the process gives its memory back anyway.
        self._finalizer.atexit = False

    def keep_for_ever(self) -> None:
        """Never unmap: native threads stay inside."""
        self._finalizer.detach()


def load_object(content: bytes | memoryview) -> LoadedObject:
    """Map an object's code and data, and relocate them.

    Raises:
        ValueError: not a relocatable ELF object for this machine, damaged, or referring to a symbol outside.
        MemoryError, OSError: the system has no memory, or no executable memory, to give.
    """
    return link_object(parse_object(content))


def link_object(parsed: ObjectFile) -> LoadedObject:
    """Map a parsed object. See `load_object`."""
    if _HOST_MACHINES.get(platform.machine().lower()) is not parsed.machine:
        raise ValueError(f"object file is for {parsed.machine.name}, this machine is {platform.machine()}")
    table = _table_symbols(parsed)
    layout = _Layout.of(parsed, len(table))
    address = system.map_memory(layout.size)
    try:
        _fill(parsed, layout, table, address)
        for part, protection in enumerate(_PROTECTIONS):
            begin, end = layout.part_begins[part], layout.part_begins[part + 1]
            if begin < end:
                system.protect_memory(address + begin, end - begin, protection)
        system.flush_instruction_cache(address, layout.part_begins[_CONSTANTS])
    except BaseException:
        system.unmap_memory(address, layout.size)
        raise
    exported = {
        symbol.name: address + layout.offsets[symbol.section] + symbol.value
        for symbol in parsed.symbols
        if symbol.is_global and symbol.section in layout.offsets
    }
    return LoadedObject(address, layout.size, exported)


@dataclass(frozen=True)
class _Layout:
    """Where sections stand in the mapping: code, then constants and the table of addresses, then writable data."""

    offsets: dict[int | None, int]
    part_begins: tuple[int, ...]
    table_offset: int

    @property
    def size(self) -> int:
        return self.part_begins[-1]

    @staticmethod
    def of(parsed: ObjectFile, table_entries: int) -> _Layout:
        offsets: dict[int | None, int] = {}
        begins = [0]
        table_offset = end = 0
        for part in range(len(_PROTECTIONS)):
            for number, section in parsed.sections.items():
                if _part_of(section) == part:
                    offsets[number] = _round_up(end, section.alignment)
                    end = offsets[number] + section.size
            if part == _CONSTANTS:
                table_offset = _round_up(end, ADDRESS_BYTES)
                end = table_offset + table_entries * ADDRESS_BYTES
            end = _round_up(end, system.page_bytes())
            begins.append(end)
        if end > MAX_BYTES:
            raise ValueError(f"object file wants {end} bytes of memory, more than {MAX_BYTES}")
        begins[-1] = max(end, system.page_bytes())
        return _Layout(offsets, tuple(begins), table_offset)


def _part_of(section: Section) -> int:
    if section.flags & SectionFlag.EXECUTE:
        if section.flags & SectionFlag.WRITE:
            raise ValueError("object file has a section that is both writable and executable")
        return _CODE
    return _DATA if section.flags & SectionFlag.WRITE else _CONSTANTS


def _round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _all_relocations(parsed: ObjectFile) -> Iterable[Relocation]:
    return (relocation for section in parsed.sections.values() for relocation in section.relocations)


def _table_symbols(parsed: ObjectFile) -> dict[int, int]:
    """Entry in the table of addresses by symbol number, for symbols that code reads from there."""
    through_table = THROUGH_TABLE[parsed.machine]
    used = (relocation.symbol for relocation in _all_relocations(parsed) if relocation.kind in through_table)
    return {symbol: entry for entry, symbol in enumerate(dict.fromkeys(used))}


def _fill(parsed: ObjectFile, layout: _Layout, table: dict[int, int], address: int) -> None:
    resolve = _Resolver(parsed.symbols, layout, address)
    entries = {symbol: address + layout.table_offset + entry * ADDRESS_BYTES for symbol, entry in table.items()}
    for symbol, entry in entries.items():
        system.write_memory(entry, struct.pack("<Q", resolve(symbol)))
    for number, section in parsed.sections.items():
        if section.content is None:
            continue
        start = address + layout.offsets[number]
        content = bytearray(section.content)
        for relocation in section.relocations:
            _apply(parsed.machine, relocation, content, start, resolve, entries)
        system.write_memory(start, content)


class _Resolver:
    """Addresses of symbols."""

    def __init__(self, symbols: tuple[Symbol, ...], layout: _Layout, address: int) -> None:
        self._symbols = symbols
        self._layout = layout
        self._address = address

    def __call__(self, number: int) -> int:
        if number >= len(self._symbols):
            raise ValueError("object file is damaged: a relocation names no symbol")
        symbol = self._symbols[number]
        if symbol.is_absolute:
            return symbol.value
        if symbol.section not in self._layout.offsets:
            raise ValueError(f"object file refers to {symbol.name!r}, which it does not contain")
        return self._address + self._layout.offsets[symbol.section] + symbol.value


def _apply(
    machine: Machine,
    relocation: Relocation,
    content: bytearray,
    start: int,
    resolve: _Resolver,
    entries: dict[int, int],
) -> None:
    if relocation.kind in THROUGH_TABLE[machine]:
        patch, target = THROUGH_TABLE[machine][relocation.kind], entries[relocation.symbol]
    elif relocation.kind in DIRECT[machine]:
        patch, target = DIRECT[machine][relocation.kind], resolve(relocation.symbol)
    else:
        raise ValueError(f"object file has a relocation of kind {relocation.kind}, which is not known")
    if relocation.offset >= len(content):
        raise ValueError("object file is damaged: a relocation lies outside its section")
    try:
        patch(content, relocation.offset, target + relocation.addend, start + relocation.offset)
    except struct.error as error:
        raise ValueError(f"cannot relocate kind {relocation.kind}: {error}") from error
