"""Reads the text form of programs (see `printer.py`).

In: text. Out: a program of new buffers. Only operations that have been imported are known.
"""

from __future__ import annotations

import numpy as np

from glowstone.lir.buffer import Array, Buffer, BufferKind, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.operation import OPERATIONS, Access, Operation
from glowstone.lir.printer import HEADER, LIR_TEXT_VERSION
from glowstone.lir.program import Alloc, Dealloc, Program, Statement
from glowstone.text import Scanner, field_types, parse_value
from glowstone.types import ElementType, Shape, row_major_strides


def parse_program(text: str) -> Program:
    """The inverse of `print_program`; large constants come back without data.

    Raises:
        ParseError: the text is not a program of this version; the message begins with line and column.
    """
    return _Parser(text).program()


class _Parser:
    def __init__(self, text: str) -> None:
        self._scanner = Scanner(text)
        self._buffers: dict[str, Buffer] = {}

    def program(self) -> Program:
        scanner = self._scanner
        scanner.expect(HEADER)
        version = scanner.word()
        if version != str(LIR_TEXT_VERSION):
            raise scanner.error(f"text of version {version}; this is version {LIR_TEXT_VERSION}")
        result = Program()
        while not scanner.accept("{"):
            buffer = self._declaration()
            if buffer.kind is BufferKind.INPUT:
                result.inputs.append(buffer)
            elif buffer.kind is BufferKind.OUTPUT:
                result.outputs.append(buffer)
        while not scanner.accept("}"):
            result.body.append(self._statement())
        if not scanner.at_end:
            raise scanner.error("text after the program")
        return result

    def _declaration(self) -> Buffer:
        scanner = self._scanner
        kind = scanner.convert(scanner.word(), BufferKind)
        scanner.expect("%")
        name = scanner.name()
        if name in self._buffers:
            raise scanner.error(f"second buffer of name {name}")
        scanner.expect(":")
        element = scanner.convert(scanner.word(), ElementType)
        shape = self._integers("[", "]")
        channels = scanner.convert(scanner.word(), int) if scanner.accept("channels") else None
        data = self._data(element, shape) if scanner.accept("=") else None
        self._buffers[name] = Buffer(name, kind, element, shape, channels, data)
        return self._buffers[name]

    def _data(self, element: ElementType, shape: Shape) -> Array:
        scanner = self._scanner
        form = scanner.word()
        values = np.frombuffer(scanner.convert(scanner.word(), bytes.fromhex), np.uint8)
        count = int(np.prod(shape, dtype=np.int64))
        expected = {"splat": element.size, "hex": element.size * count}.get(form)
        if len(values) != expected:
            raise scanner.error(f"{form} of {len(values)} bytes for {element}{list(shape)}")
        flat = values.view(element.dtype)
        return np.broadcast_to(flat, (count,)).reshape(shape) if form == "splat" else flat.reshape(shape)

    def _statement(self) -> Statement:
        scanner = self._scanner
        word = scanner.word()
        if word == "alloc":
            return Alloc(self._buffer())
        if word == "dealloc":
            return Dealloc(self._buffer())
        if word not in OPERATIONS:
            raise scanner.error(f"unknown operation {word}")
        operation = self._operation(OPERATIONS[word])
        operands = self._operands(operation)
        integers = self._integers("<", ">") if scanner.is_next("<") else ()
        names = []
        while scanner.is_next('"'):
            names.append(scanner.string())
        return Instruction(operation, operands, integers, tuple(names))

    def _operation(self, kind: type[Operation]) -> Operation:
        scanner = self._scanner
        values: dict[str, object] = {}
        for name, hint in field_types(kind).items():
            scanner.expect("," if values else "{")
            scanner.expect(name)
            scanner.expect("=")
            values[name] = parse_value(scanner, hint)
        if values:
            scanner.expect("}")
        return kind(**values)

    def _operands(self, operation: Operation) -> tuple[View, ...]:
        scanner = self._scanner
        views: list[View] = []
        scanner.expect("(")
        for access in operation.accesses:
            if views:
                scanner.expect(",")
            written = scanner.convert(scanner.word(), Access)
            if written is not access:
                raise scanner.error(f"operand {len(views)} of {operation.name} is {access.value}, not {written.value}")
            views.append(self._view())
        scanner.expect(")")
        return tuple(views)

    def _view(self) -> View:
        scanner = self._scanner
        buffer = self._buffer()
        shape = self._integers("[", "]")
        offset = scanner.convert(scanner.word(), int) if scanner.accept("+") else 0
        strides = scanner.integers() if scanner.accept("/") else row_major_strides(shape)
        if len(strides) != len(shape):
            raise scanner.error(f"{len(strides)} strides for {len(shape)} axes")
        return View(buffer, offset, shape, strides)

    def _buffer(self) -> Buffer:
        self._scanner.expect("%")
        return self._scanner.convert(self._scanner.name(), self._known)

    def _known(self, name: str) -> Buffer:
        if name not in self._buffers:
            raise ValueError(f"no buffer of name {name}")
        return self._buffers[name]

    def _integers(self, opening: str, closing: str) -> tuple[int, ...]:
        scanner = self._scanner
        scanner.expect(opening)
        if scanner.accept(closing):
            return ()
        values = scanner.integers()
        scanner.expect(closing)
        return values
