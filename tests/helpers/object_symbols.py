"""What an object file expects from others."""

from __future__ import annotations

import struct

SYMBOL_TABLE = 2
UNDEFINED = 0


def undefined_symbols(content: bytes) -> set[str]:
    """Names that a 64-bit little-endian ELF object expects from others."""
    assert content[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    headers = [struct.unpack_from("<IIQQQQII", content, table + size * number) for number in range(count)]
    names = set()
    for _, kind, _, _, start, length, link, _ in headers:
        if kind != SYMBOL_TABLE:
            continue
        strings = headers[link][4]
        for position in range(start + 24, start + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", content, position)
            if section == UNDEFINED:
                end = content.index(b"\0", strings + name)
                names.add(content[strings + name : end].decode())
    return names
