"""Reads relocatable ELF objects: sections, symbols, relocations. 64-bit, little-endian.

In: the object's bytes. Out: an `ObjectFile`. Every offset is checked, so that a truncated or damaged file gives a
`ValueError` and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag

_HEADER = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_CLASS_64, _LITTLE_ENDIAN, _RELOCATABLE = 2, 1, 1
_SYMBOL_TABLE, _RELOCATIONS_WITH_ADDEND, _NO_BITS, _RELOCATIONS = 2, 4, 8, 9
_FIRST_RESERVED_SECTION, _ABSOLUTE = 0xFF00, 0xFFF1
_GLOBAL_BINDINGS = (1, 2)
_MAX_ALIGNMENT = 1 << 16
_MAX_NAME = 1 << 16


class Machine(IntEnum):
    """Processors whose relocations are known."""

    X86_64 = 62
    AARCH64 = 183


class SectionFlag(IntFlag):
    WRITE = 1
    ALLOCATE = 2
    EXECUTE = 4


@dataclass(frozen=True)
class Relocation:
    """A place in a section that depends on a symbol's address."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Section:
    """A section that is part of the program in memory; `content` is None for zeroes."""

    flags: SectionFlag
    size: int
    alignment: int
    content: memoryview | None
    relocations: tuple[Relocation, ...]


@dataclass(frozen=True)
class Symbol:
    """A name for a place. `section` is None where the object does not define it."""

    name: str
    section: int | None
    value: int
    is_absolute: bool
    is_global: bool


@dataclass(frozen=True)
class ObjectFile:
    """Sections by their number in the file (only those that occupy memory), and all symbols."""

    machine: Machine
    sections: dict[int, Section]
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class _RawSection:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def parse_object(content: bytes | memoryview) -> ObjectFile:
    """Read an object file.

    Raises:
        ValueError: not a 64-bit little-endian relocatable ELF file of a known machine, or damaged.
    """
    data = memoryview(content)
    try:
        return _parse(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"object file is damaged: {error}") from error


def _parse(data: memoryview) -> ObjectFile:
    magic, width, order, _, kind, machine, _, _, _, table, _, _, _, _, entry, count, _ = _HEADER.unpack_from(data)
    if magic != b"\x7fELF" or (width, order, kind) != (_CLASS_64, _LITTLE_ENDIAN, _RELOCATABLE):
        raise ValueError("not a 64-bit little-endian relocatable ELF object")
    if machine not in tuple(Machine):
        raise ValueError(f"object file is for machine {machine}, which has no loader")
    if entry != _SECTION.size:
        raise ValueError("object file is damaged: size of section headers")
    raw = [_raw_section(data, table + number * entry) for number in range(count)]
    relocations = _relocations(data, raw)
    sections = {
        number: _section(data, section, tuple(relocations.get(number, ())))
        for number, section in enumerate(raw)
        if section.flags & SectionFlag.ALLOCATE
    }
    return ObjectFile(Machine(machine), sections, tuple(_symbols(data, raw)))


def _raw_section(data: memoryview, position: int) -> _RawSection:
    _, kind, flags, _, offset, size, link, info, alignment, _ = _SECTION.unpack_from(data, position)
    return _RawSection(kind, flags, offset, size, link, info, alignment)


def _content(data: memoryview, section: _RawSection) -> memoryview:
    if section.offset + section.size > len(data):
        raise ValueError("object file is damaged: a section lies outside the file")
    return data[section.offset : section.offset + section.size]


def _section(data: memoryview, raw: _RawSection, relocations: tuple[Relocation, ...]) -> Section:
    alignment = max(1, raw.alignment)
    if alignment & (alignment - 1) or alignment > _MAX_ALIGNMENT:
        raise ValueError(f"object file is damaged: alignment {alignment}")
    content = None if raw.kind == _NO_BITS else _content(data, raw)
    return Section(SectionFlag(raw.flags & sum(SectionFlag)), raw.size, alignment, content, relocations)


def _relocations(data: memoryview, raw: list[_RawSection]) -> dict[int, list[Relocation]]:
    """Relocations by the number of the section that they change."""
    result: dict[int, list[Relocation]] = {}
    for section in raw:
        if section.kind == _RELOCATIONS:
            raise ValueError("object file has relocations without addends, which these machines do not use")
        if section.kind != _RELOCATIONS_WITH_ADDEND:
            continue
        entries = result.setdefault(section.info, [])
        for offset, info, addend in _RELOCATION.iter_unpack(_content(data, section)):
            entries.append(Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend))
    return result


def _symbols(data: memoryview, raw: list[_RawSection]) -> Iterator[Symbol]:
    for section in raw:
        if section.kind != _SYMBOL_TABLE:
            continue
        names = _content(data, raw[section.link])
        for name, info, _, index, value, _ in _SYMBOL.iter_unpack(_content(data, section)):
            is_absolute = index == _ABSOLUTE
            is_defined = 0 < index < _FIRST_RESERVED_SECTION
            text = _name(names, name)
            yield Symbol(text, index if is_defined else None, value, is_absolute, info >> 4 in _GLOBAL_BINDINGS)


def _name(names: memoryview, position: int) -> str:
    content, end, _ = bytes(names[position : position + _MAX_NAME]).partition(b"\0")
    if not end:
        raise ValueError("object file is damaged: a symbol's name has no end")
    return content.decode()
