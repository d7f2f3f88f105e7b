"""Memory plans of random lifetimes, against sums and comparisons made position by position."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from glowstone.lir import Alloc, Buffer, BufferKind, Dealloc, Program
from glowstone.memory import check_plan, plan_memory
from glowstone.types import ElementType

Lifetimes = list[tuple[int, int, int]]  # first position, number of positions, bytes
lifetimes = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(0, 700)), max_size=40)


def program_of(spans: Lifetimes) -> tuple[Program, list[Buffer]]:
    buffers = [Buffer(f"b{i}", BufferKind.ACTIVATION, ElementType.U8, (size,)) for i, (_, _, size) in enumerate(spans)]
    program = Program()
    for position in range(50):
        for (begin, length, _), buffer in zip(spans, buffers, strict=True):
            if begin + length == position:
                program.body.append(Dealloc(buffer))
        for (begin, _, _), buffer in zip(spans, buffers, strict=True):
            if begin == position:
                program.body.append(Alloc(buffer))
    return program, buffers


@settings(max_examples=200, deadline=None)
@given(lifetimes, st.sampled_from([1, 16, 64]))
def test_buffers_live_at_once_are_apart_and_the_bound_is_their_largest_sum(spans, alignment):
    program, buffers = program_of(spans)
    plan = plan_memory(program, alignment)
    check_plan(program, plan, alignment)
    rounded = [-(-size // alignment) * alignment for _, _, size in spans]
    sums = [
        sum(size for (begin, length, _), size in zip(spans, rounded, strict=True) if begin <= position < begin + length)
        for position in range(50)
    ]
    assert plan.bound == max(sums)
    assert plan.bound <= plan.arena_bytes <= sum(rounded)
    for (i, (begin, length, size)), (j, (begin2, length2, size2)) in itertools.combinations(enumerate(spans), 2):
        if begin < begin2 + length2 and begin2 < begin + length:
            low, low2 = plan.offsets[buffers[i]], plan.offsets[buffers[j]]
            assert low + size <= low2 or low2 + size2 <= low
    assert all(offset % alignment == 0 for offset in plan.offsets.values())


@settings(max_examples=50, deadline=None)
@given(lifetimes)
def test_the_plan_depends_on_the_program_alone(spans):
    plans = [plan_memory(program_of(spans)[0]) for _ in range(2)]
    assert list(plans[0].offsets.values()) == list(plans[1].offsets.values())
