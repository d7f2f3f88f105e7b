"""The layout of the table of calls: word positions, kinds of record, numbers of bases, status codes.

The table is an immutable array of little-endian int64 words; `docs/architecture.md` shows it, and only this module
knows the numbers. `lir/table.py` encodes programs into it; runtimes and machine code read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

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

LOOP_FIRST_SLOT, LOOP_SLOT_WORDS = 5, 3
"""In a LOOP record, where the slots begin, and words of each."""

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


NO_CALL = KernelCall(None, units=0)
"""What stands for the call of an instruction of control flow."""


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
