"""Walks a table of calls and computes each with `Operation.interpret`.

In: the words of a table, the keys its kernel indices stand for, and bases (byte arrays). Out: what the calls write.
The walk reads nothing but the table: it sees what machine code sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.backends.interpreter.planner import InterpreterKey
from glowstone.errors import InternalError
from glowstone.lir.table import DecodedOperand, decode_operands
from glowstone.table import INSTRUCTION, KERNEL, KIND, WORDS, Record, Words
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Observer = Callable[[int], None]
"""Called with the number of an instruction."""


def run_table(
    words: Words,
    kernels: Sequence[InterpreterKey],
    bases: list[Bytes],
    *,
    before: Observer | None = None,
    after: Observer | None = None,
) -> None:
    """Run the table from its first record to END.

    Args:
        words: the table of calls.
        kernels: the key of every kernel index.
        bases: memory by base number; what a program may not write should be read-only. The bases that loops move are
            added, and are what they are at the moment whenever an observer is called.
        before: called before each instruction.
        after: called after each instruction.

    Raises:
        ExecutionError: an instruction met a value that it refuses.
        InternalError: the table is not well formed.
    """
    _Walk(words, kernels, bases, before, after).run()


def operand_array(base: Bytes, operand: DecodedOperand, element: ElementType) -> Array:
    """The operand as a strided NumPy view of its base.

    Raises:
        InternalError: it leaves the base.
    """
    if 0 in operand.shape:
        return np.empty(operand.shape, element.dtype)
    strides = tuple(stride * element.size for stride in operand.strides)
    try:
        return np.ndarray(operand.shape, element.dtype, base.data, operand.address.offset, strides)
    except (TypeError, ValueError) as error:
        raise InternalError(f"an operand leaves its base: {operand}") from error


@dataclass
class _Loop:
    """A LOOP that is running: passes left, and (slot, source, increment in bytes) of its slots."""

    left: int
    done: int
    slots: list[tuple[int, Bytes, int]]


class _Walk:
    def __init__(
        self,
        words: Words,
        kernels: Sequence[InterpreterKey],
        bases: list[Bytes],
        before: Observer | None,
        after: Observer | None,
    ) -> None:
        self._words = words
        self._kernels = kernels
        self._bases = bases
        self._before = before
        self._after = after
        self._loops: dict[int, _Loop] = {}

    def run(self) -> None:
        position: int | None = 0
        while position is not None:
            record = self._words[position : position + int(self._words[position + WORDS])]
            position = self._step(position, record)

    def _step(self, position: int, record: Words) -> int | None:
        """Execute the record at a position; returns where to go on, None at the end."""
        following = position + len(record)
        match int(record[KIND]):
            case Record.END:
                return None
            case Record.CALL:
                self._call(record)
                return following
            case Record.LOOP:
                return following if self._enter(position, record) else self._behind_loop(position)
            case Record.NEXT:
                return self._next(int(record[2]), following)
            case Record.BRANCH:
                condition = self._bases[int(record[2])][int(record[3])]
                return following if condition else int(record[4])
            case Record.JUMP:
                return int(record[2])
            case kind:
                raise InternalError(f"record of unknown kind {kind} at word {position}")

    def _call(self, record: Words) -> None:
        number = int(record[INSTRUCTION])
        if self._before is not None:
            self._before(number)
        key = self._kernels[int(record[KERNEL])]
        operands, integers = decode_operands(record, key.ranks)
        arrays = [
            operand_array(self._bases[operand.address.base], operand, element)
            for operand, element in zip(operands, key.elements, strict=True)
        ]
        key.operation.interpret(arrays, integers[: key.integers])
        if self._after is not None:
            self._after(number)

    def _enter(self, position: int, record: Words) -> bool:
        """Begin a loop; False if it has no pass."""
        base, offset, count = (int(word) for word in record[2:5])
        left = int(self._bases[base][offset : offset + 8].view(np.int64)[0])
        slots = []
        for slot in range(count):
            target, source, increment = (int(word) for word in record[5 + 3 * slot : 8 + 3 * slot])
            while len(self._bases) <= target:
                self._bases.append(np.empty(0, np.uint8))
            self._bases[target] = self._bases[source]
            slots.append((target, self._bases[source], increment))
        self._loops[position] = _Loop(left, 0, slots)
        return left > 0

    def _next(self, position: int, following: int) -> int:
        """End of a pass of the loop at a position: back to its first record, or on."""
        loop = self._loops[position]
        loop.left -= 1
        loop.done += 1
        if loop.left <= 0:
            del self._loops[position]
            return following
        for target, source, increment in loop.slots:
            self._bases[target] = source[loop.done * increment :]
        return position + int(self._words[position + WORDS])

    def _behind_loop(self, loop: int) -> int:
        """Where to go on after a loop without a pass: behind the NEXT that names it."""
        position = loop
        while self._words[position + KIND] != Record.END:
            following = position + int(self._words[position + WORDS])
            if self._words[position + KIND] == Record.NEXT and self._words[position + 2] == loop:
                return following
            position = following
        raise InternalError(f"the loop at word {loop} has no end")
