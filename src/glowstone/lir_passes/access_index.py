"""Who reads and writes what: the one analysis that the low-level passes share.

In: a program. Out: uses by buffer, in program order, kept true while instructions are edited or removed through the
index. `commit` writes the result back. Positions are those at construction: edits do not move instructions.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from glowstone.lir.buffer import Buffer, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.lifetimes import place_lifetimes
from glowstone.lir.operation import Access, Operation
from glowstone.lir.overlap import overlaps, same_elements
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

    @property
    def place(self) -> tuple[int, int]:
        """What uses are ordered by."""
        return self.position, self.operand


class _Uses:
    """Uses of one buffer, in program order: all, those that read, and those that write. Some have thousands."""

    def __init__(self) -> None:
        self.all: list[Use] = []
        self.reads: list[Use] = []
        self.writes: list[Use] = []
        self.written_at: dict[int, list[Use]] = {}
        """Those that write and do not read, by the offset of the view."""

    def add(self, use: Use) -> None:
        for uses in self._lists(use):
            if uses and uses[-1].place > use.place:
                insort(uses, use, key=_place)
            else:
                uses.append(use)

    def remove(self, use: Use) -> None:
        for uses in self._lists(use):
            del uses[bisect_left(uses, use.place, key=_place)]

    def _lists(self, use: Use) -> Iterator[list[Use]]:
        yield self.all
        if use.access.reads:
            yield self.reads
        if use.access.writes:
            yield self.writes
        if not use.access.reads:
            yield self.written_at.setdefault(use.view.offset, [])


class AccessIndex:
    """Uses of every buffer of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._order = list(program.instructions())
        self._position = {instruction: position for position, instruction in enumerate(self._order)}
        self._removed: set[Instruction] = set()
        self._uses: dict[Buffer, _Uses] = {}
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
        return self._of(buffer).all

    def writes(self, buffer: Buffer) -> list[Use]:
        """The uses that write; do not edit the list."""
        return self._of(buffer).writes

    def reads(self, buffer: Buffer) -> list[Use]:
        """The uses that read; do not edit the list."""
        return self._of(buffer).reads

    def first_read(self, view: View, begin: int) -> Use | None:
        """The first use at a position from `begin` that may read of the view."""
        reads = self.reads(view.buffer)
        return next((use for use in _between(reads, begin, len(self._order)) if overlaps(use.view, view)), None)

    def first_overwrite(self, view: View, begin: int) -> Use | None:
        """The first use from position `begin` on that writes the very view and whose instruction reads none of it."""
        writes = self._of(view.buffer).written_at.get(view.offset, ())
        for use in _between(writes, begin, len(self._order)):
            if same_elements(use.view, view) and not any(overlaps(source, view) for source in use.instruction.inputs):
                return use
        return None

    def is_written(self, view: View, begin: int, end: int) -> bool:
        """Whether an instruction at a position in [begin, end) may write into the view."""
        return any(overlaps(use.view, view) for use in _between(self.writes(view.buffer), begin, end))

    def is_used(self, view: View, begin: int, end: int) -> bool:
        """Whether an instruction at a position in [begin, end) may read or write into the view."""
        return any(overlaps(use.view, view) for use in _between(self.uses(view.buffer), begin, end))

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
            self._uses.setdefault(view.buffer, _Uses()).add(Use(position, instruction, operand, access))

    def _leave(self, instruction: Instruction) -> None:
        position = self._position[instruction]
        for operand, (view, access) in enumerate(instruction.accessed()):
            self._uses[view.buffer].remove(Use(position, instruction, operand, access))

    def _of(self, buffer: Buffer) -> _Uses:
        return self._uses.get(buffer) or _Uses()


def _place(use: Use) -> tuple[int, int]:
    return use.place


def _between(uses: Sequence[Use], begin: int, end: int) -> Iterator[Use]:
    """The uses at positions in [begin, end)."""
    for number in range(bisect_left(uses, (begin, 0), key=_place), len(uses)):
        if uses[number].position >= end:
            return
        yield uses[number]
