"""Applies relocations: writes addresses into code and data.

In: a section's bytes, where it will stand, and symbol addresses. The formulas are those of the processors' ELF
supplements: S symbol, A addend, P place, G its entry in the table of addresses, Page(x) = x without its low 12 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from glowstone.runtime.elf import Machine

PAGE_MASK = ~0xFFF

Patch = Callable[[bytearray, int, int, int], None]
"""(section bytes, offset, S + A, P): write the field."""


def _absolute(code: str) -> Patch:
    """A field that holds S + A."""
    field = struct.Struct("<" + code)

    def patch(content: bytearray, offset: int, target: int, place: int) -> None:
        field.pack_into(content, offset, target)

    return patch


def _relative(code: str) -> Patch:
    """A field that holds S + A - P."""
    field = struct.Struct("<" + code)

    def patch(content: bytearray, offset: int, target: int, place: int) -> None:
        field.pack_into(content, offset, target - place)

    return patch


_INSTRUCTION = struct.Struct("<I")


def _insert(content: bytearray, offset: int, mask: int, bits: int) -> None:
    """Replace the masked bits of an AArch64 instruction."""
    (word,) = _INSTRUCTION.unpack_from(content, offset)
    _INSTRUCTION.pack_into(content, offset, word & ~mask | bits & mask)


def _signed(value: int, bits: int) -> int:
    """The value itself, if it fits a signed field.

    Raises:
        struct.error: it does not.
    """
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise struct.error(f"{value} does not fit {bits} bits")
    return value


def _branch(bits: int, position: int) -> Patch:
    """A signed distance in instructions, `bits` wide, at bit `position`."""

    def patch(content: bytearray, offset: int, target: int, place: int) -> None:
        distance = _signed(target - place >> 2, bits)
        _insert(content, offset, ((1 << bits) - 1) << position, distance << position)

    return patch


def _page_address(content: bytearray, offset: int, target: int, place: int) -> None:
    """ADRP: the signed distance in pages, split in two fields."""
    _address(content, offset, _signed((target & PAGE_MASK) - (place & PAGE_MASK) >> 12, 21))


def _near_address(content: bytearray, offset: int, target: int, place: int) -> None:
    """ADR: the signed distance in bytes."""
    _address(content, offset, _signed(target - place, 21))


def _address(content: bytearray, offset: int, distance: int) -> None:
    low, high = distance & 3, distance >> 2 & 0x7FFFF
    _insert(content, offset, 3 << 29 | 0x7FFFF << 5, low << 29 | high << 5)


def _low_bits(shift: int) -> Patch:
    """The low 12 bits of the target, scaled by the access size, at bit 10."""

    def patch(content: bytearray, offset: int, target: int, place: int) -> None:
        _insert(content, offset, 0xFFF << 10, ((target & 0xFFF) >> shift) << 10)

    return patch


_X86_64: dict[int, Patch] = {
    1: _absolute("Q"),  # R_X86_64_64
    2: _relative("i"),  # PC32
    4: _relative("i"),  # PLT32
    10: _absolute("I"),  # 32
    11: _absolute("i"),  # 32S
    24: _relative("q"),  # PC64
}
_X86_64_TABLE: dict[int, Patch] = {
    9: _relative("i"),  # GOTPCREL
    41: _relative("i"),  # GOTPCRELX
    42: _relative("i"),  # REX_GOTPCRELX
}
_AARCH64: dict[int, Patch] = {
    257: _absolute("Q"),  # R_AARCH64_ABS64
    258: _absolute("I"),  # ABS32
    260: _relative("q"),  # PREL64
    261: _relative("i"),  # PREL32
    273: _branch(19, 5),  # LD_PREL_LO19
    274: _near_address,  # ADR_PREL_LO21
    275: _page_address,  # ADR_PREL_PG_HI21
    276: _page_address,  # ADR_PREL_PG_HI21_NC
    277: _low_bits(0),  # ADD_ABS_LO12_NC
    278: _low_bits(0),  # LDST8_ABS_LO12_NC
    279: _branch(14, 5),  # TSTBR14
    280: _branch(19, 5),  # CONDBR19
    282: _branch(26, 0),  # JUMP26
    283: _branch(26, 0),  # CALL26
    284: _low_bits(1),  # LDST16_ABS_LO12_NC
    285: _low_bits(2),  # LDST32_ABS_LO12_NC
    286: _low_bits(3),  # LDST64_ABS_LO12_NC
    299: _low_bits(4),  # LDST128_ABS_LO12_NC
    314: _relative("i"),  # PLT32
}
_AARCH64_TABLE: dict[int, Patch] = {
    311: _page_address,  # ADR_GOT_PAGE
    312: _low_bits(3),  # LD64_GOT_LO12_NC
}

DIRECT: dict[Machine, dict[int, Patch]] = {Machine.X86_64: _X86_64, Machine.AARCH64: _AARCH64}
"""Relocations against the symbol's address."""
THROUGH_TABLE: dict[Machine, dict[int, Patch]] = {Machine.X86_64: _X86_64_TABLE, Machine.AARCH64: _AARCH64_TABLE}
"""Relocations against the symbol's entry in the table of addresses (GOT)."""
