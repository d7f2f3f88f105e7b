"""Liveness, plans and their checker, on programs whose best plan is known."""

import random

import pytest

from glowstone.errors import InternalError, LimitError
from glowstone.lir import Alloc, Buffer, BufferKind, Dealloc, Fill, Instruction, Program
from glowstone.memory import MemoryPlan, assign_addresses, check_plan, live_intervals, plan_memory
from glowstone.types import ElementType


def program_of(text: str, sizes: dict[str, int]) -> Program:
    """A program from marks: "+a" is alloc, "-a" dealloc; sizes in bytes."""
    buffers = {name: Buffer(name, BufferKind.ACTIVATION, ElementType.U8, (size,)) for name, size in sizes.items()}
    return Program(body=[(Alloc if mark[0] == "+" else Dealloc)(buffers[mark[1:]]) for mark in text.split()])


def by_name(plan: MemoryPlan) -> dict[str, int]:
    return {buffer.name: offset for buffer, offset in plan.offsets.items()}


def test_intervals_come_from_the_marks():
    intervals = live_intervals(program_of("+a +b -a +c -b -c", {"a": 1, "b": 1, "c": 1}))
    assert [(i.buffer.name, i.begin, i.end) for i in intervals] == [("a", 0, 2), ("b", 1, 4), ("c", 3, 5)]
    a, b, c = intervals
    assert a.meets(b)
    assert b.meets(c)
    assert not a.meets(c)


def test_a_dead_buffer_is_reused():
    program = program_of("+a +b -a +c -b -c", {"a": 64, "b": 64, "c": 64})
    plan = plan_memory(program)
    assert plan.arena_bytes == plan.bound == 128
    assert by_name(plan)["a"] == by_name(plan)["c"]


def test_a_buffer_that_begins_where_another_ends_may_take_its_place():
    plan = plan_memory(program_of("+a -a +b -b", {"a": 100, "b": 70}))
    assert by_name(plan) == {"a": 0, "b": 0}
    assert plan.arena_bytes == 128


def test_offsets_and_sizes_are_aligned():
    plan = plan_memory(program_of("+a +b +c -a -b -c", {"a": 1, "b": 65, "c": 3}), alignment=64)
    assert sorted(by_name(plan).values()) == [0, 128, 192]
    assert plan.arena_bytes == plan.bound == 256
    plan = plan_memory(program_of("+a +b -a -b", {"a": 1, "b": 65}), alignment=4096)
    assert plan.arena_bytes == 8192


def test_empty_programs_and_buffers():
    assert plan_memory(Program()) == MemoryPlan({}, 0, 0)
    plan = plan_memory(program_of("+a +b -a -b", {"a": 0, "b": 64}))
    assert plan.arena_bytes == 64


@pytest.mark.parametrize(
    ("marks", "sizes"),
    [
        ("+a +b -a +c -b +d -c +e -d -e", {"a": 64, "b": 128, "c": 192, "d": 128, "e": 256}),
        ("+e +d -e +c -d +b -c +a -b -a", {"a": 64, "b": 128, "c": 192, "d": 128, "e": 256}),
        ("+a +b +c -b +d -a +e -c -d -e", {"a": 64, "b": 128, "c": 64, "d": 128, "e": 64}),
    ],
)
def test_small_cases_reach_the_bound(marks, sizes):
    program = program_of(marks, sizes)
    plan = plan_memory(program)
    check_plan(program, plan)
    assert plan.arena_bytes == plan.bound


def residual_network(seed: int, blocks: int = 60) -> Program:
    """Allocation marks like those of a convolutional network: shrinking maps, branches, and long-lived shortcuts."""
    draw = random.Random(seed)
    marks: list[str] = ["+in"]
    sizes = {"in": 3 * 224 * 224 * 4}
    last, extent, channels = "in", 112, 32
    for block in range(blocks):
        if draw.random() < 0.1 and extent > 7:
            extent, channels = extent // 2, channels * 2
        names = [f"b{block}_{i}" for i in range(draw.choice([1, 2, 3]))]
        size = extent * extent * channels * 4
        previous = last
        for name in names:
            sizes[name] = size * draw.choice([1, 1, 2, 4]) // 4
            marks.append(f"+{name}")
            if previous != last:
                marks.append(f"-{previous}")
            previous = name
        sizes[f"o{block}"] = size
        marks += [f"+o{block}", f"-{previous}", f"-{last}"]
        last = f"o{block}"
    marks.append(f"-{last}")
    return program_of(" ".join(marks), sizes)


def encoder(layers: int, length: int, width: int = 384) -> Program:
    """Allocation marks of a transformer encoder: projections, scores, and two residuals per layer."""
    row = length * width * 4
    marks, sizes, last = ["+x"], {"x": row}, "x"
    for layer in range(layers):
        parts = {
            "q": row,
            "k": row,
            "v": row,
            "s": 12 * length * length * 4,
            "c": row,
            "r": row,
            "h": 4 * row,
            "y": row,
        }
        sizes.update({f"{name}{layer}": size for name, size in parts.items()})
        steps = "+q +k +v +s -q -k +c -s -v +r -c -{last} +h +y -h -r".replace("{last}", "X")
        marks += [f"-{last}" if step == "-X" else f"{step}{layer}" for step in steps.split()]
        last = f"y{layer}"
    marks.append(f"-{last}")
    return program_of(" ".join(marks), sizes)


@pytest.mark.parametrize(
    "program",
    [*(residual_network(seed) for seed in range(12)), *(encoder(6, length) for length in (1, 8, 128, 512))],
)
def test_programs_like_real_models_stay_within_a_hundredth_of_the_bound(program):
    plan = plan_memory(program)
    check_plan(program, plan)
    assert plan.bound <= plan.arena_bytes <= 1.01 * plan.bound


def test_the_plan_is_deterministic():
    first, second = (by_name(plan_memory(residual_network(3))) for _ in range(2))
    assert first == second


def test_the_limit_is_refused_with_a_remedy_before_anything_else():
    program = program_of("+a +b -a -b", {"a": 640, "b": 64})
    assert plan_memory(program, limit=704).arena_bytes == 704
    with pytest.raises(LimitError) as caught:
        plan_memory(program, limit=703)
    assert caught.value.found == "704 bytes"
    assert "memory_limit" in str(caught.value.remedy)
    huge = program_of("+a -a", {"a": 1 << 62})
    with pytest.raises(LimitError):
        plan_memory(huge, limit=1 << 40)


def test_the_checker_finds_what_is_wrong():
    program = program_of("+a +b -a -b", {"a": 64, "b": 64})
    a, b = (interval.buffer for interval in live_intervals(program))
    check_plan(program, MemoryPlan({a: 64, b: 0}, 128, 128))
    for offsets, words in [
        ({a: 0, b: 0}, "overlap"),
        ({a: 0}, "no place"),
        ({a: 0, b: 65}, "misplaced"),
        ({a: 0, b: 128}, "misplaced"),
        ({a: -64, b: 0}, "misplaced"),
    ]:
        with pytest.raises(InternalError, match=words):
            check_plan(program, MemoryPlan(offsets, 128, 128))


def test_addresses_give_every_buffer_a_place_of_its_own():
    kinds = [BufferKind.INPUT, BufferKind.OUTPUT, BufferKind.CONSTANT, BufferKind.CONSTANT, BufferKind.PLAN_CONSTANT]
    x, y, c, d, p = (Buffer(f"b{i}", kind, ElementType.U8, (65,)) for i, kind in enumerate(kinds))
    a = Buffer("a", BufferKind.ACTIVATION, ElementType.U8, (65,))
    fills = [Instruction(Fill(0), (buffer.view(),)) for buffer in (c, d, p, a)]
    program = Program([x], [y], [Alloc(a), *fills, Dealloc(a)])
    found = assign_addresses(program, plan_memory(program))
    assert [(found.addresses[b].base, found.addresses[b].offset) for b in (x, y, c, d, p, a)] == [
        (3, 0),
        (4, 0),
        (0, 0),
        (0, 128),
        (1, 0),
        (2, 0),
    ]
    assert (found.constant_bytes, found.plan_constant_bytes, found.arena_bytes) == (256, 128, 128)
    state = Buffer("state", BufferKind.MUTABLE, ElementType.U8, (1,))
    program.body.append(Instruction(Fill(0), (state.view(),)))
    with pytest.raises(InternalError, match="mutable buffer state"):
        assign_addresses(program, plan_memory(program))
