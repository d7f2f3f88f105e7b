"""The text form of programs.

    glowstone.lir 1
    input %x: f32[1,8]
    output %y: f32[1,8]
    constant %b: f32[8] = splat 0000803f
    activation %t: f32[1,8]
    {
      alloc %t
      Elementwise{expressions=(add(x0:f32, x1:f32)), arity=2}(out %t[1,8], in %x[1,8], in %b[1,8]/0,1) "node"
      Copy(out %y[1,8], in %t[1,8])
      dealloc %t
    }

A view is `%buffer[shape]`, then `+offset` where it is not 0, then `/strides` where they are not row-major. Behind the
operands stand the run-time integers in angle brackets, then the ONNX names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from glowstone.lir.buffer import Buffer, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.program import Alloc, Dealloc, Program, Statement
from glowstone.text import field_types, print_value, quote_name
from glowstone.types import row_major_strides

LIR_TEXT_VERSION = 1
HEADER = "glowstone.lir"
MAX_PRINTED_BYTES = 64
"""Larger constants are printed without their data."""
MAX_SPLAT_BYTES = 1 << 16
"""Larger constants are not searched for being all the same."""

Names = Mapping[Buffer, str]
"""What buffers are called in a text, where not by their own name."""
_OWN_NAMES: Names = {}


def print_program(program: Program) -> str:
    """The program as text; `parse_program` reads it back, but for the data of large constants."""
    names = unique_names(program.buffers())
    lines = [f"{HEADER} {LIR_TEXT_VERSION}"]
    lines += (print_buffer(buffer, names) for buffer in names)
    lines.append("{")
    lines += (f"  {print_statement(statement, names)}" for statement in program.body)
    lines.append("}")
    return "\n".join(lines) + "\n"


def unique_names(buffers: Sequence[Buffer]) -> dict[Buffer, str]:
    """A name for every buffer: its own, or that with a number where an earlier one has it already."""
    taken = {buffer.name for buffer in buffers}
    names: dict[Buffer, str] = {}
    used: set[str] = set()
    for buffer in buffers:
        name, number = buffer.name, 1
        while name in used or (number > 1 and name in taken):
            number += 1
            name = f"{buffer.name}.{number}"
        names[buffer] = name
        used.add(name)
    return names


def print_buffer(buffer: Buffer, names: Names = _OWN_NAMES) -> str:
    """The declaration of a buffer."""
    text = f"{buffer.kind.value} {_reference(buffer, names)}: {buffer.element}[{_commas(buffer.shape)}]"
    if buffer.channels is not None:
        text += f" channels {buffer.channels}"
    return text + _print_data(buffer)


def print_statement(statement: Statement, names: Names = _OWN_NAMES) -> str:
    """One line of the body."""
    if isinstance(statement, Alloc):
        return f"alloc {_reference(statement.buffer, names)}"
    if isinstance(statement, Dealloc):
        return f"dealloc {_reference(statement.buffer, names)}"
    return _print_instruction(statement, names)


def print_view(view: View, names: Names = _OWN_NAMES) -> str:
    """Buffer, shape, and offset and strides where they say something."""
    text = f"{_reference(view.buffer, names)}[{_commas(view.shape)}]"
    if view.offset:
        text += f"+{view.offset}"
    if view.strides != row_major_strides(view.shape):
        text += f"/{_commas(view.strides)}"
    return text


def _reference(buffer: Buffer, names: Names) -> str:
    return "%" + quote_name(names.get(buffer, buffer.name))


def _print_instruction(instruction: Instruction, names: Names) -> str:
    operation = instruction.operation
    fields = ", ".join(f"{name}={print_value(getattr(operation, name))}" for name in field_types(type(operation)))
    operands = ", ".join(f"{access.value} {print_view(view, names)}" for view, access in instruction.accessed())
    text = operation.name + (f"{{{fields}}}" if fields else "") + f"({operands})"
    if instruction.integers:
        text += f" <{_commas(instruction.integers)}>"
    return text + "".join(f" {json.dumps(name)}" for name in instruction.names)


def _print_data(buffer: Buffer) -> str:
    if buffer.data is None or buffer.bytes > MAX_SPLAT_BYTES:
        return ""
    data = np.ascontiguousarray(buffer.data).tobytes()
    first = data[: buffer.element.size] or bytes(buffer.element.size)
    if data == first * buffer.size:
        return f" = splat {first.hex()}"
    return f" = hex {data.hex()}" if len(data) <= MAX_PRINTED_BYTES else ""


def _commas(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))
