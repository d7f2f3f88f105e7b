"""Runs a table of calls.

In: the table, kernel addresses, and an address for every base. Out: the outputs, written in place. `PreparedTable` is
immutable and shared; a `Runner` is one call in flight and belongs to one Python thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from glowstone.backends.cpu.native.layout import (
    LINE_BYTES,
    MAX_PARTICIPANTS,
    RUN_WORDS,
    STATUS_STRIDE,
    WORD_BYTES,
    Result,
    RunField,
)
from glowstone.errors import ExecutionError
from glowstone.runtime.native import NativeCode
from glowstone.table import (
    COST,
    HEADER_WORDS,
    KERNEL,
    KIND,
    LOOP_FIRST_SLOT,
    LOOP_SLOT_WORDS,
    SCRATCH,
    STATUS_CODE,
    STATUS_INSTRUCTION,
    STATUS_UNIT,
    STATUS_VALUE,
    STATUS_WORDS,
    Record,
    StatusCode,
    Words,
)

BUDGET_NANOSECONDS = 20_000_000
"""Estimated time after which a run comes back to Python, so that Ctrl-C works."""
SHARED_COST_NANOSECONDS = 200_000
"""Tables estimated cheaper than this run on one thread: waking helpers takes some 50 microseconds."""

Describe = Callable[[int], str]
"""Gives the name of an instruction, or of its operation, by its number."""

_LEAST_WORDS = {
    Record.END: 2,
    Record.CALL: HEADER_WORDS,
    Record.LOOP: 5,
    Record.NEXT: 3,
    Record.BRANCH: 5,
    Record.JUMP: 3,
}
"""Length of each kind of record without its variable part."""
_MESSAGES = {StatusCode.INDEX_OUT_OF_RANGE: "an index is out of range"}


@dataclass(frozen=True)
class PreparedTable:
    """A table with the addresses of its kernels, ready for any number of runners."""

    words: Words
    kernels: Words
    """Address of each kernel."""
    base_count: int
    """Length of the array of bases, loop slots included."""
    scratch_bytes: int
    """Scratch of one participant: the most that a call asks for."""
    cost: int
    """Estimated nanoseconds of all calls, each counted once."""
    has_loops: bool
    keep_alive: object
    """What holds the kernels in memory."""


def prepare(words: Words, kernels: Sequence[int], base_count: int, keep_alive: object) -> PreparedTable:
    """Check a table and sum it up. `base_count` counts bases that are not moved by loops; those of loops are added.

    Raises:
        ValueError: a record has an unknown kind or length, or names a kernel that is not there.
    """
    table = np.ascontiguousarray(words, "<i8")
    scratch = cost = 0
    has_loops = False
    slots = [base_count - 1]
    for position, record in _records(table):
        if record[KIND] == Record.CALL:
            if not 0 <= record[KERNEL] < len(kernels):
                raise ValueError(f"record at word {position} calls kernel {record[KERNEL]} of {len(kernels)}")
            scratch = max(scratch, record[SCRATCH])
            cost += record[COST]
        if record[KIND] == Record.LOOP:
            has_loops = True
            slots += record[LOOP_FIRST_SLOT::LOOP_SLOT_WORDS]
    addresses = np.array(kernels, np.int64)
    return PreparedTable(table, addresses, max(slots) + 1, scratch, cost, has_loops, keep_alive)


def _records(table: Words) -> Iterator[tuple[int, list[int]]]:
    """Position and words of every record.

    Raises:
        ValueError: the records do not fill the table, or it does not close with END.
    """
    words = table.tolist()
    position, kind = 0, None
    while position < len(words):
        kind, length = [*words[position : position + 2], 0][:2]
        if kind not in _LEAST_WORDS:
            raise ValueError(f"record at word {position} has kind {kind}")
        if length < _LEAST_WORDS[kind] or position + length > len(words):
            raise ValueError(f"record at word {position} has length {length}")
        yield position, words[position : position + length]
        position += length
    if kind != Record.END:
        raise ValueError("the table does not close with an END record")


class Runner:
    """One call in flight: addresses, scratch and status of a prepared table.

    Fill `bases` (addresses as integers, in the order of `lir/table.py`) before `run`, and keep that memory alive.
    """

    def __init__(
        self,
        code: NativeCode,
        table: PreparedTable,
        threads: int,
        describe: Describe,
        operation: Describe | None = None,
    ) -> None:
        if not 1 <= threads <= MAX_PARTICIPANTS:
            raise ValueError(f"threads must be between 1 and {MAX_PARTICIPANTS}, not {threads}")
        self._code = code
        self._table = table
        self._describe = describe
        self._operation = operation
        self._helpers = min(threads - 1, code.pool.limit) if table.cost >= SHARED_COST_NANOSECONDS else 0
        self._entry = code.run_shared if self._helpers else code.run
        participants = self._helpers + 1
        self._words = _aligned_words(RUN_WORDS)
        self.bases = _aligned_words(table.base_count)
        """Address of every base; loop slots are set by the run."""
        self._passes = _aligned_words(len(table.words) if table.has_loops else 0)
        self._status = _aligned_words(participants * STATUS_STRIDE // WORD_BYTES)
        stride = -(-table.scratch_bytes // LINE_BYTES) * LINE_BYTES
        self._scratch = _aligned_words(participants * stride // WORD_BYTES)
        self._address = self._words.ctypes.data
        self._fill_run(participants, stride)

    def _fill_run(self, participants: int, scratch_stride: int) -> None:
        values = {
            RunField.TABLE: self._table.words.ctypes.data,
            RunField.KERNELS: self._table.kernels.ctypes.data,
            RunField.BASES: self.bases.ctypes.data,
            RunField.PASSES: self._passes.ctypes.data,
            RunField.SCRATCH: self._scratch.ctypes.data,
            RunField.SCRATCH_STRIDE: scratch_stride,
            RunField.STATUS: self._status.ctypes.data,
            RunField.BUDGET: BUDGET_NANOSECONDS,
            RunField.PARTICIPANTS: participants,
            RunField.POOL: self._code.pool.address,
        }
        for field, value in values.items():
            self._words[field] = value

    def run(self) -> None:
        """Execute the whole table.

        Raises:
            ExecutionError: an instruction met a value that it must not meet. Outputs are not defined then.
        """
        try:
            if self._helpers:
                self._code.ensure_helpers(self._helpers)
            result = self._entry(self._address)
            if result:
                result = self._resume(result)
        except BaseException:
            self._words[RunField.POSITION] = 0
            self._words[RunField.SPENT] = 0
            raise
        if result:
            self._raise(Result(result))

    def _resume(self, result: int) -> int:
        """Go on until the run ends. Python handles signals in between."""
        while result == Result.PAUSED:
            result = self._entry(self._address)
        return result

    def _raise(self, result: Result) -> NoReturn:
        assert result is Result.FAILED, f"native run gave {result.name}"
        records = self._status.reshape(-1, STATUS_STRIDE // WORD_BYTES)[:, :STATUS_WORDS]
        failed = records[records[:, STATUS_CODE] != StatusCode.GOOD]
        first = failed[np.argmin(failed[:, STATUS_UNIT])]
        instruction = int(first[STATUS_INSTRUCTION]) - 1
        error = ExecutionError(
            _MESSAGES[StatusCode(int(first[STATUS_CODE]))],
            node=self._describe(instruction),
            operator=self._operation(instruction) if self._operation else None,
            found=int(first[STATUS_VALUE]),
        )
        self._status[:] = 0
        raise error


def _aligned_words(count: int) -> Words:
    """Zeroed words that begin on a line of their own."""
    padding = LINE_BYTES // WORD_BYTES
    words = np.zeros(count + padding, np.int64)
    skip = -words.ctypes.data % LINE_BYTES // WORD_BYTES
    return words[skip : skip + count]
