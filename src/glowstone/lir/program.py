"""A program: buffers and a straight list of instructions with lifetime marks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from glowstone.lir.buffer import Buffer, BufferKind
from glowstone.lir.instruction import Instruction


@dataclass(frozen=True)
class Alloc:
    """From here on an activation buffer holds memory (of no defined content)."""

    buffer: Buffer


@dataclass(frozen=True)
class Dealloc:
    """From here on its memory may be reused."""

    buffer: Buffer


Statement = Alloc | Dealloc | Instruction


@dataclass(eq=False)
class Program:
    """Instructions in execution order. An activation buffer has one `Alloc` before and one `Dealloc` after its uses."""

    inputs: list[Buffer] = field(default_factory=list)
    outputs: list[Buffer] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)

    def instructions(self) -> Iterator[Instruction]:
        return (statement for statement in self.body if isinstance(statement, Instruction))

    def buffers(self) -> list[Buffer]:
        """Every buffer, in order of first mention: inputs, outputs, then the body."""
        found = dict.fromkeys([*self.inputs, *self.outputs])
        for statement in self.body:
            if isinstance(statement, Instruction):
                found.update(dict.fromkeys(view.buffer for view in statement.operands))
            else:
                found.setdefault(statement.buffer)
        return list(found)

    def buffers_of(self, kind: BufferKind) -> list[Buffer]:
        return [buffer for buffer in self.buffers() if buffer.kind is kind]
