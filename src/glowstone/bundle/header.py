"""The C header of a bundle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from glowstone.bundle.argument import Argument

ARENA_ALIGNMENT = 64


def header_text(name: str, inputs: Sequence[Argument], outputs: Sequence[Argument], arena_bytes: int) -> str:
    """Sizes, the order of inputs and outputs, and the function to call."""
    macro = name.upper()
    lines = [
        f"/* Model {name}, compiled by Glowstone. Link {name}.o; it needs no library. */",
        f"#ifndef {macro}_H",
        f"#define {macro}_H",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {macro}_ARENA_BYTES {arena_bytes}",
        f"#define {macro}_ARENA_ALIGNMENT {ARENA_ALIGNMENT}",
        "",
        *_arguments(macro, "INPUT", inputs),
        *_arguments(macro, "OUTPUT", outputs),
        "/* Run the model on this thread. Inputs and outputs in the order above, row-major; the arena is memory for",
        "   this call alone and need not be set. Returns 0, or 1 if an index was out of range. */",
        f"int {name}_run(const void *const *inputs, void *const *outputs, void *arena);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        f"#endif /* {macro}_H */",
    ]
    return "\n".join(lines) + "\n"


def _arguments(macro: str, kind: str, arguments: Sequence[Argument]) -> Iterator[str]:
    yield f"#define {macro}_{kind}_COUNT {len(arguments)}"
    for number, (identifier, argument) in enumerate(zip(_identifiers(arguments), arguments, strict=True)):
        shape = ", ".join(map(str, argument.shape))
        yield f"#define {macro}_{kind}_{identifier} {number} /* {argument.element} [{shape}] */"
        yield f"#define {macro}_{kind}_{identifier}_BYTES {argument.bytes}"
    yield ""


def _identifiers(arguments: Sequence[Argument]) -> list[str]:
    """Names as parts of C identifiers, all different."""
    found: list[str] = []
    for number, argument in enumerate(arguments):
        identifier = re.sub(r"[^A-Za-z0-9]+", "_", argument.name).strip("_").upper()
        taken = not identifier or identifier in found or identifier == "COUNT"
        found.append(f"{identifier}_{number}".strip("_") if taken else identifier)
    return found
