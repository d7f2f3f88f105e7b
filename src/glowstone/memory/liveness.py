"""When each activation buffer holds memory.

In: a program with lifetime marks. Out: one interval per buffer, in order of begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowstone.lir.buffer import Buffer
from glowstone.lir.program import Alloc, Dealloc, Program


@dataclass(frozen=True)
class LiveInterval:
    """A buffer is live from statement `begin` (its alloc) up to, not including, statement `end` (its dealloc)."""

    buffer: Buffer
    begin: int
    end: int

    def meets(self, other: LiveInterval) -> bool:
        """Whether both are live at once."""
        return self.begin < other.end and other.begin < self.end


def live_intervals(program: Program) -> list[LiveInterval]:
    """The intervals of all activation buffers, in order of their allocs."""
    begins: dict[Buffer, int] = {}
    ends: dict[Buffer, int] = {}
    for position, statement in enumerate(program.body):
        if isinstance(statement, Alloc):
            begins[statement.buffer] = position
        elif isinstance(statement, Dealloc):
            ends[statement.buffer] = position
    return [LiveInterval(buffer, begin, ends[buffer]) for buffer, begin in begins.items()]


def largest_live_sum(intervals: Sequence[LiveInterval], sizes: Sequence[int]) -> int:
    """The largest sum of sizes live at once: no arena can be smaller. Size i belongs to interval i."""
    events = [(interval.begin, size) for interval, size in zip(intervals, sizes, strict=True)]
    events += [(interval.end, -size) for interval, size in zip(intervals, sizes, strict=True)]
    largest = live = 0
    for _, change in sorted(events):
        live += change
        largest = max(largest, live)
    return largest
