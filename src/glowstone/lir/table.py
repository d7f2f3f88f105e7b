"""The table of calls: the byte form of a program that the interpreter, machine code and bundles share.

In: a program, an address for every buffer, and what the backend says of every instruction (`KernelCall`).
Out: an immutable array of little-endian int64 words. The layout stands in `docs/architecture.md` and only here in code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from glowstone.lir.buffer import Buffer
from glowstone.lir.instruction import Instruction

Words = np.ndarray[Any, np.dtype[np.int64]]


class Record(IntEnum):
    """First word of a record."""

    END = 0
    CALL = 1
    LOOP = 2
    """kind, words, count base, count offset, number of slots, per slot: slot base, source base, increment in bytes.
    The count is an int64 read at base + offset. A slot starts at its source and advances after every pass."""
    NEXT = 3
    """kind, words, word index of its LOOP record: go round again or fall through."""
    BRANCH = 4
    """kind, words, base, offset of a bool, word index to go to where it is false."""
    JUMP = 5
    """kind, words, word index to go to."""


KIND, WORDS, KERNEL, UNITS, GRAIN, SCRATCH, COST, INSTRUCTION = range(8)
HEADER_WORDS = 8

BASE_CONSTANTS, BASE_PLAN_CONSTANTS, BASE_ARENA, FIRST_ARGUMENT_BASE = range(4)

STATUS_INSTRUCTION, STATUS_UNIT, STATUS_CODE, STATUS_VALUE = range(4)
STATUS_WORDS = 4


class StatusCode(IntEnum):
    """What a kernel found wrong."""

    GOOD = 0
    INDEX_OUT_OF_RANGE = 1


@dataclass(frozen=True)
class KernelCall:
    """What a backend says of one instruction: which kernel, and how its work is divided.

    `key` identifies the compiled code: equal keys share one kernel. `units` and `grain` (units per claim) follow
    from extents only. `scratch` is in bytes per participant, `cost` an estimate in nanoseconds.
    """

    key: object
    units: int
    grain: int = 1
    scratch: int = 0
    cost: int = 0
    derived: tuple[int, ...] = ()


@dataclass(frozen=True)
class Address:
    """Where a buffer is: base number and offset in bytes."""

    base: int
    offset: int


@dataclass(frozen=True)
class CallLayout:
    """Word positions inside a call record, from the operands' ranks alone. Kernels are compiled against it."""

    ranks: tuple[int, ...]

    def operand(self, index: int) -> int:
        """Word of the base id; the byte offset follows it."""
        return HEADER_WORDS + sum(2 + 2 * rank for rank in self.ranks[:index])

    def extent(self, index: int, axis: int) -> int:
        return self.operand(index) + 2 + axis

    def stride(self, index: int, axis: int) -> int:
        return self.operand(index) + 2 + self.ranks[index] + axis

    @property
    def integers(self) -> int:
        """Word of the first run-time integer; derived integers follow the last."""
        return self.operand(len(self.ranks))


@dataclass(frozen=True)
class TableEntry:
    """One CALL record before encoding."""

    instruction: Instruction
    call: KernelCall
    kernel: int


def encode(entries: Sequence[TableEntry], addresses: Mapping[Buffer, Address]) -> Words:
    """Encode calls in order, closed by an END record."""
    words: list[int] = []
    for number, entry in enumerate(entries):
        words.extend(_call_record(number, entry, addresses))
    words.extend((Record.END, 2))
    return np.array(words, dtype="<i8")


def _call_record(number: int, entry: TableEntry, addresses: Mapping[Buffer, Address]) -> list[int]:
    call = entry.call
    record = [Record.CALL, 0, entry.kernel, call.units, call.grain, call.scratch, call.cost, number]
    for view in entry.instruction.operands:
        address = addresses[view.buffer]
        record += (address.base, address.offset + view.offset * view.element.size)
        record += view.shape
        record += view.strides
    record += entry.instruction.integers
    record += call.derived
    record[WORDS] = len(record)
    return record


@dataclass(frozen=True)
class DecodedOperand:
    """An operand read back from a record: address, extents and strides (elements)."""

    address: Address
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def decode_operands(record: Words, ranks: Sequence[int]) -> tuple[list[DecodedOperand], tuple[int, ...]]:
    """The operands of a call record and the integers behind them (run-time, then derived)."""
    operands = []
    position = HEADER_WORDS
    for rank in ranks:
        base, offset = (int(word) for word in record[position : position + 2])
        extents = tuple(int(word) for word in record[position + 2 : position + 2 + rank])
        strides = tuple(int(word) for word in record[position + 2 + rank : position + 2 + 2 * rank])
        operands.append(DecodedOperand(Address(base, offset), extents, strides))
        position += 2 + 2 * rank
    return operands, tuple(int(word) for word in record[position : int(record[WORDS])])
