"""Places activation buffers in one arena.

In: a program with lifetime marks. Out: a byte offset per buffer. Invariant: buffers live at once do not overlap, every
offset is a multiple of the alignment, and the same program gives the same plan.

Buffers are placed one after another, each in the smallest gap that fits among those live at the same time. The order
decides how good the result is: largest first is nearly always at the bound; where it is not, other orders are tried,
then the best order again with the buffers that stuck out moved forward.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from glowstone.errors import LimitError
from glowstone.lir.buffer import Buffer
from glowstone.lir.program import Program
from glowstone.memory.liveness import LiveInterval, largest_live_sum, live_intervals
from glowstone.support.budget import tick

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector of any target."""

MOST_PAIRS = 4_000_000
"""Of buffers live at once. With more of them, looking for gaps among all others takes too long."""
REPAIR_ROUNDS = 24
"""How often the best order is changed and tried again while the plan is above the bound."""


@dataclass(frozen=True)
class MemoryPlan:
    """Byte offset of each activation buffer in an arena of `arena_bytes`.

    `bound` is the largest sum of live buffers (sizes rounded up to the alignment): no plan can be smaller.
    """

    offsets: dict[Buffer, int]
    arena_bytes: int
    bound: int


def plan_memory(program: Program, alignment: int = ALIGNMENT, limit: int | None = None) -> MemoryPlan:
    """Plan the arena.

    Args:
        program: with one alloc and dealloc per activation buffer.
        alignment: in bytes, of every offset.
        limit: the most bytes that the arena may have, and the results together.

    Raises:
        LimitError: the arena, or the results together, would be larger than the limit.
    """
    intervals = live_intervals(program)
    sizes = [_round_up(interval.buffer.bytes, alignment) for interval in intervals]
    bound = largest_live_sum(intervals, sizes)
    _check_limit(bound, limit)
    _check_limit(sum(buffer.bytes for buffer in program.outputs), limit, "results")
    placement = _best_placement(intervals, sizes, bound)
    arena_bytes = max((offset + size for offset, size in zip(placement, sizes, strict=True)), default=0)
    _check_limit(arena_bytes, limit)
    offsets = {interval.buffer: offset for interval, offset in zip(intervals, placement, strict=True)}
    return MemoryPlan(offsets, arena_bytes, bound)


def _check_limit(needed: int, limit: int | None, what: str = "intermediate results") -> None:
    if limit is not None and needed > limit:
        raise LimitError(
            f"the model's {what} need more memory than is allowed",
            expected=f"at most {limit} bytes",
            found=f"{needed} bytes",
            remedy="use smaller inputs or a smaller batch, or raise memory_limit",
        )


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _best_placement(intervals: Sequence[LiveInterval], sizes: Sequence[int], bound: int) -> list[int]:
    """Offsets by interval number: the first that reaches the bound, else the smallest found."""
    neighbours = _neighbours(intervals)
    if neighbours is None:
        return _place_by_size(intervals, sizes)
    best: list[int] = [0] * len(sizes)
    best_order: list[int] = list(range(len(sizes)))
    best_height = 0 if not sizes else sum(sizes) + 1
    for order in _orders(intervals, sizes):
        offsets = _place(order, sizes, neighbours)
        height = _height(offsets, sizes)
        if height < best_height:
            best, best_order, best_height = offsets, order, height
        if best_height <= bound:
            return best
    order = best_order
    offsets = best
    for _ in range(REPAIR_ROUNDS):
        order = _move_forward(order, offsets, sizes, bound)
        offsets = _place(order, sizes, neighbours)
        height = _height(offsets, sizes)
        if height < best_height:
            best, best_height = offsets, height
        if best_height <= bound:
            break
    return best


def _height(offsets: Sequence[int], sizes: Sequence[int]) -> int:
    return max((offset + size for offset, size in zip(offsets, sizes, strict=True)), default=0)


def _orders(intervals: Sequence[LiveInterval], sizes: Sequence[int]) -> Iterator[list[int]]:
    """The orders to try, in order of how often they are best. Ties go to the earlier buffer."""
    keys: list[Callable[[int], tuple[int, ...]]] = [
        lambda i: (-sizes[i], intervals[i].begin),
        lambda i: (intervals[i].begin, -sizes[i]),
        lambda i: (intervals[i].begin - intervals[i].end, -sizes[i]),
        lambda i: (sizes[i] * (intervals[i].begin - intervals[i].end), intervals[i].begin),
        lambda i: (-intervals[i].end, -sizes[i]),
    ]
    for key in keys:
        yield sorted(range(len(sizes)), key=key)


def _neighbours(intervals: Sequence[LiveInterval]) -> list[list[int]] | None:
    """For each interval, in order of begin, those live at the same time; None where there are very many."""
    result: list[list[int]] = [[] for _ in intervals]
    live: list[int] = []
    pairs = 0
    for number, interval in enumerate(intervals):
        tick()
        live = [other for other in live if intervals[other].end > interval.begin]
        pairs += len(live)
        if pairs > MOST_PAIRS:
            return None
        for other in live:
            result[other].append(number)
        result[number].extend(live)
        live.append(number)
    return result


def _place_by_size(intervals: Sequence[LiveInterval], sizes: Sequence[int]) -> list[int]:
    """Each buffer where one of the same size was before, else at the end: in time linear in their number."""
    offsets: list[int] = []
    free: dict[int, list[int]] = {}
    live: list[tuple[int, int]] = []
    end = 0
    for number, (interval, size) in enumerate(zip(intervals, sizes, strict=True)):
        while live and live[0][0] <= interval.begin:
            _, dead = heapq.heappop(live)
            free.setdefault(sizes[dead], []).append(offsets[dead])
        places = free.get(size)
        offsets.append(places.pop() if places else end)
        end = max(end, offsets[-1] + size)
        heapq.heappush(live, (interval.end, number))
    return offsets


def _place(order: Sequence[int], sizes: Sequence[int], neighbours: Sequence[Sequence[int]]) -> list[int]:
    """Best fit: each buffer into the smallest gap between placed neighbours, the lowest among equals."""
    offsets = [-1] * len(sizes)
    for number in order:
        tick()
        size = sizes[number]
        taken = sorted((offsets[other], sizes[other]) for other in neighbours[number] if offsets[other] >= 0)
        place, smallest, end = -1, 0, 0
        for offset, length in taken:
            gap = offset - end
            if gap >= size and (place < 0 or gap < smallest):
                place, smallest = end, gap
            end = max(end, offset + length)
        offsets[number] = place if place >= 0 else end
    return offsets


def _move_forward(order: list[int], offsets: Sequence[int], sizes: Sequence[int], bound: int) -> list[int]:
    """The order with the buffers that reach beyond the bound put first: they choose their place before others."""
    high = {number for number in order if offsets[number] + sizes[number] > bound}
    return [number for number in order if number in high] + [number for number in order if number not in high]
