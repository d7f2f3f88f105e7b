"""Control instructions as records of the table of calls.

In: instructions in order, the addresses of their buffers. Out: records, with the places to go to filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glowstone.lir.buffer import Buffer, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.control import Branch, Join, LoopBegin, LoopEnd, Otherwise
from glowstone.table import Address, Record

_TO_BE_FILLED_IN = -1


@dataclass
class _Open:
    """A region whose end is not written: the position of its LOOP record, and words that name the place behind it."""

    loop: int = _TO_BE_FILLED_IN
    leaving: list[int] = field(default_factory=list)


class ControlEncoder:
    """Appends control records to the words of a table, between the calls that others append."""

    def __init__(self, words: list[int], addresses: Mapping[Buffer, Address]) -> None:
        self._words = words
        self._addresses = addresses
        self._open: list[_Open] = []

    def add(self, instruction: Instruction) -> None:
        """The records of one control instruction."""
        match instruction.operation:
            case LoopBegin():
                self._begin_loop(instruction, instruction.operation)
            case LoopEnd():
                self._end_loop(instruction, instruction.operation)
            case Branch():
                self._open.append(_Open())
                self._branch(instruction.operands[0])
            case Join():
                self._fill_in(self._open.pop())
            case Otherwise():
                first = self._open.pop()
                second = _Open(leaving=[len(self._words) + 2])
                self._words += (Record.JUMP, 3, _TO_BE_FILLED_IN)
                self._fill_in(first)
                self._open.append(second)

    def _begin_loop(self, instruction: Instruction, operation: LoopBegin) -> None:
        self._open.append(_Open())
        if operation.conditional:
            self._branch(instruction.operands[1])
        self._open[-1].loop = len(self._words)
        slots: list[int] = []
        for number, move in enumerate(instruction.integers):
            first = operation.first_window + 2 * number
            window, rows = instruction.operands[first : first + 2]
            bases = (self._addresses[window.buffer].base, self._addresses[rows.buffer].base)
            slots += (*bases, move * rows.element.size)
        self._words += (Record.LOOP, 5 + len(slots), *self._place(instruction.operands[0]))
        self._words += (len(instruction.integers), *slots)

    def _end_loop(self, instruction: Instruction, operation: LoopEnd) -> None:
        if operation.conditional:
            self._branch(instruction.operands[0])
        region = self._open.pop()
        self._words += (Record.NEXT, 3, region.loop)
        self._fill_in(region)

    def _branch(self, condition: View) -> None:
        """Leave the innermost region unless the condition holds."""
        self._open[-1].leaving.append(len(self._words) + 4)
        self._words += (Record.BRANCH, 5, *self._place(condition), _TO_BE_FILLED_IN)

    def _fill_in(self, region: _Open) -> None:
        for word in region.leaving:
            self._words[word] = len(self._words)

    def _place(self, view: View) -> tuple[int, int]:
        """Base and offset in bytes of a single element."""
        address = self._addresses[view.buffer]
        return (address.base, address.offset + view.offset * view.element.size)
