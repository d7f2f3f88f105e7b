"""Who reads and writes what: the one analysis that the low-level passes share.

In: a program. Out: uses by buffer, in program order, kept true while instructions are edited or removed through the
index. `commit` writes the result back. Positions are those at construction: edits do not move instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from glowstone.lir.buffer import Buffer, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.lifetimes import place_lifetimes
from glowstone.lir.operation import Access, Operation
from glowstone.lir.overlap import overlaps
from glowstone.lir.program import Program


@dataclass(frozen=True)
class Use:
    """Operand number `operand` of an instruction at a position."""

    position: int
    instruction: Instruction
    operand: int
    access: Access

    @property
    def view(self) -> View:
        return self.instruction.operands[self.operand]


class AccessIndex:
    """Uses of every buffer of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._order = list(program.instructions())
        self._position = {instruction: position for position, instruction in enumerate(self._order)}
        self._removed: set[Instruction] = set()
        self._uses: dict[Buffer, list[Use]] = {}
        self._edited = False
        for instruction in self._order:
            self._enter(instruction)

    def instructions(self, *, backwards: bool = False) -> Iterator[Instruction]:
        """The instructions that are left, in order or in reverse. Editing and removing on the way is allowed."""
        order = reversed(self._order) if backwards else iter(self._order)
        return (instruction for instruction in order if instruction not in self._removed)

    def position(self, instruction: Instruction) -> int:
        return self._position[instruction]

    def uses(self, buffer: Buffer) -> list[Use]:
        """All uses of a buffer, in program order; do not edit the list."""
        return self._uses.get(buffer, [])

    def writes(self, buffer: Buffer) -> list[Use]:
        return [use for use in self.uses(buffer) if use.access.writes]

    def reads(self, buffer: Buffer) -> list[Use]:
        return [use for use in self.uses(buffer) if use.access.reads]

    def is_written(self, view: View, begin: int, end: int) -> bool:
        """Whether an instruction at a position in [begin, end) may write into the view."""
        return any(
            begin <= use.position < end and use.access.writes and overlaps(use.view, view)
            for use in self.uses(view.buffer)
        )

    def is_used(self, view: View, begin: int, end: int) -> bool:
        """Whether an instruction at a position in [begin, end) may read or write into the view."""
        return any(begin <= use.position < end and overlaps(use.view, view) for use in self.uses(view.buffer))

    def set_operand(self, use: Use, view: View) -> None:
        """Let the use name another view."""
        operands = list(use.instruction.operands)
        operands[use.operand] = view
        self.replace(use.instruction, use.instruction.operation, tuple(operands))

    def replace(
        self,
        instruction: Instruction,
        operation: Operation,
        operands: tuple[View, ...],
        names: tuple[str, ...] | None = None,
    ) -> None:
        """Let the instruction do something else, at its place."""
        self._leave(instruction)
        instruction.operation = operation
        instruction.operands = operands
        if names is not None:
            instruction.names = names
        self._enter(instruction)
        self._edited = True

    def remove(self, instruction: Instruction) -> None:
        self._leave(instruction)
        self._removed.add(instruction)
        self._edited = True

    def commit(self) -> bool:
        """Write the program's body: what is left, with lifetimes placed anew. Returns whether anything was edited."""
        if self._edited:
            self._program.body[:] = self.instructions()
            place_lifetimes(self._program)
        return self._edited

    def _enter(self, instruction: Instruction) -> None:
        position = self._position[instruction]
        for operand, (view, access) in enumerate(instruction.accessed()):
            uses = self._uses.setdefault(view.buffer, [])
            uses.append(Use(position, instruction, operand, access))
            if len(uses) > 1 and uses[-2].position > position:
                uses.sort(key=lambda use: (use.position, use.operand))

    def _leave(self, instruction: Instruction) -> None:
        for buffer in instruction.buffers():
            self._uses[buffer] = [use for use in self._uses[buffer] if use.instruction is not instruction]
