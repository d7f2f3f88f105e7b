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


def print_program(program: Program) -> str:
    """The program as text; `parse_program` reads it back, but for the data of large constants."""
    lines = [f"{HEADER} {LIR_TEXT_VERSION}"]
    lines += (print_buffer(buffer) for buffer in program.buffers())
    lines.append("{")
    lines += (f"  {print_statement(statement)}" for statement in program.body)
    lines.append("}")
    return "\n".join(lines) + "\n"


def print_buffer(buffer: Buffer) -> str:
    """The declaration of a buffer."""
    text = f"{buffer.kind.value} %{quote_name(buffer.name)}: {buffer.element}[{_commas(buffer.shape)}]"
    if buffer.channels is not None:
        text += f" channels {buffer.channels}"
    return text + _print_data(buffer)


def print_statement(statement: Statement) -> str:
    """One line of the body."""
    if isinstance(statement, Alloc):
        return f"alloc %{quote_name(statement.buffer.name)}"
    if isinstance(statement, Dealloc):
        return f"dealloc %{quote_name(statement.buffer.name)}"
    return _print_instruction(statement)


def print_view(view: View) -> str:
    """Buffer, shape, and offset and strides where they say something."""
    text = f"%{quote_name(view.buffer.name)}[{_commas(view.shape)}]"
    if view.offset:
        text += f"+{view.offset}"
    if view.strides != row_major_strides(view.shape):
        text += f"/{_commas(view.strides)}"
    return text


def _print_instruction(instruction: Instruction) -> str:
    operation = instruction.operation
    fields = ", ".join(f"{name}={print_value(getattr(operation, name))}" for name in field_types(type(operation)))
    operands = ", ".join(f"{access.value} {print_view(view)}" for view, access in instruction.accessed())
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
