"""An independent check of a memory plan.

In: a program and its plan. Out: nothing, or `InternalError`.
"""

from __future__ import annotations

from glowstone.errors import InternalError
from glowstone.lir.buffer import Buffer
from glowstone.lir.program import Alloc, Dealloc, Program
from glowstone.memory.planner import ALIGNMENT, MemoryPlan


def check_plan(program: Program, plan: MemoryPlan, alignment: int = ALIGNMENT) -> None:
    """Walk the program and compare every buffer with all that are live when it begins.

    Raises:
        InternalError: two live buffers overlap, or one is misplaced or without a place.
    """
    live: dict[Buffer, tuple[int, int]] = {}
    for statement in program.body:
        if isinstance(statement, Dealloc):
            live.pop(statement.buffer)
        elif isinstance(statement, Alloc):
            buffer = statement.buffer
            begin, end = _place_of(buffer, plan, alignment)
            for other, (other_begin, other_end) in live.items():
                if begin < other_end and other_begin < end:
                    raise InternalError(f"memory plan: live buffers {buffer.name} and {other.name} overlap")
            live[buffer] = (begin, end)


def _place_of(buffer: Buffer, plan: MemoryPlan, alignment: int) -> tuple[int, int]:
    if buffer not in plan.offsets:
        raise InternalError(f"memory plan: no place for {buffer.name}")
    begin = plan.offsets[buffer]
    end = begin + buffer.bytes
    if begin < 0 or begin % alignment or end > plan.arena_bytes:
        raise InternalError(
            f"memory plan: {buffer.name} is misplaced",
            expected=f"a multiple of {alignment}, up to {plan.arena_bytes}",
            found=f"{begin} to {end}",
        )
    return begin, end
