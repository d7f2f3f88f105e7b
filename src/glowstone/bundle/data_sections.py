"""Adds read-only data to a relocatable ELF object and makes undefined symbols name it.

In: an object whose code refers to symbols, and their bytes. Out: the parts of the new file in order, so that large data
is not copied. The code of the object stays as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

DATA_ALIGNMENT = 64

_TABLE_OFFSET = struct.Struct("<Q")
_TABLE_OFFSET_POSITION = 40
_COUNTS = struct.Struct("<HH")
_COUNTS_POSITION = 60
"""Number of sections, and which of them holds their names."""
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PROGRAM_DATA, _SYMBOL_TABLE = 1, 2
_ALLOCATE = 2
_OBJECT_TYPE, _BINDING_SHIFT = 1, 4
_UNDEFINED = 0


@dataclass(frozen=True)
class _Section:
    """A section header, fields in file order."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    def pack(self) -> bytes:
        return _SECTION.pack(*(getattr(self, field) for field in self.__dataclass_fields__))


def add_data(content: bytes, data: Mapping[str, Sequence[memoryview]]) -> list[bytes | memoryview]:
    """Give every symbol of `data` its bytes (contiguous parts that follow each other), aligned to `DATA_ALIGNMENT`.

    Raises:
        KeyError: the object has no undefined symbol of that name.
    """
    head = bytearray(content)
    (table,) = _TABLE_OFFSET.unpack_from(head, _TABLE_OFFSET_POSITION)
    count, names_number = _COUNTS.unpack_from(head, _COUNTS_POSITION)
    sections = [_Section(*_SECTION.unpack_from(head, table + number * _SECTION.size)) for number in range(count)]
    tail: list[bytes | memoryview] = []
    end = len(head)

    def append(part: bytes | memoryview, alignment: int = 1) -> int:
        nonlocal end
        padding = -end % alignment
        tail.extend((bytes(padding), part))
        start = end + padding
        end = start + memoryview(part).nbytes
        return start

    names = bytearray(_bytes_of(head, sections[names_number]))
    for symbol, parts in data.items():
        size = sum(part.nbytes for part in parts)
        _define_symbol(head, sections, symbol, len(sections), size)
        offset = append(b"", DATA_ALIGNMENT)
        for part in parts:
            append(part)
        sections.append(_Section(len(names), _PROGRAM_DATA, _ALLOCATE, 0, offset, size, 0, 0, DATA_ALIGNMENT, 0))
        names += f".rodata.{symbol}".encode() + b"\0"
    sections[names_number] = replace(sections[names_number], offset=append(bytes(names)), size=len(names))
    new_table = append(b"".join(section.pack() for section in sections), _TABLE_OFFSET.size)
    _TABLE_OFFSET.pack_into(head, _TABLE_OFFSET_POSITION, new_table)
    _COUNTS.pack_into(head, _COUNTS_POSITION, len(sections), names_number)
    return [bytes(head), *tail]


def _bytes_of(content: bytearray, section: _Section) -> bytes:
    return bytes(content[section.offset : section.offset + section.size])


def _define_symbol(content: bytearray, sections: Sequence[_Section], name: str, number: int, size: int) -> None:
    """Let an undefined symbol stand at the start of section `number`."""
    table = next(section for section in sections if section.kind == _SYMBOL_TABLE)
    names = _bytes_of(content, sections[table.link])
    for position in range(table.offset, table.offset + table.size, _SYMBOL.size):
        name_position, info, other, section, _, _ = _SYMBOL.unpack_from(content, position)
        found = names[name_position : names.index(b"\0", name_position)].decode()
        if found == name and section == _UNDEFINED:
            binding = info >> _BINDING_SHIFT << _BINDING_SHIFT
            _SYMBOL.pack_into(content, position, name_position, binding | _OBJECT_TYPE, other, number, 0, size)
            return
    raise KeyError(name)
