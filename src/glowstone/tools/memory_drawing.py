"""A drawing of a memory plan over time, as SVG.

In: a program and its plan. Out: text, the same for the same plan. Time runs to the right, one step for each
instruction; the arena's addresses run upwards. A buffer is a box from its first instruction to its last; the dashed
line is the bound, the largest sum of buffers live at once, below which no plan can stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Final

from glowstone.lir import Instruction, Program
from glowstone.memory import MemoryPlan
from glowstone.memory.liveness import live_intervals

WIDTH: Final = 1200
HEIGHT: Final = 640
MARGIN: Final = 60
_COLORS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")
_FONT: Final = 'font-family="Helvetica, Arial, sans-serif" font-size="11"'
_GRID_LINES: Final = 5
_LEAST_NAMED_WIDTH: Final = 60
_LEAST_NAMED_HEIGHT: Final = 14
"""Pixels that a box needs to carry its name."""
_CHARACTER_WIDTH: Final = 6
_SCALES: Final = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True)
class Box:
    """A buffer of the plan: instructions from `begin` to before `end`, bytes from `offset` on."""

    name: str
    begin: int
    end: int
    offset: int
    size: int


def plan_boxes(program: Program, plan: MemoryPlan) -> list[Box]:
    """Every activation buffer that a plan places, in order of begin."""
    instructions_before = [0]
    for statement in program.body:
        instructions_before.append(instructions_before[-1] + isinstance(statement, Instruction))
    return [
        Box(
            interval.buffer.name,
            instructions_before[interval.begin],
            instructions_before[interval.end],
            plan.offsets[interval.buffer],
            interval.buffer.bytes,
        )
        for interval in live_intervals(program)
    ]


def draw_memory_plan(program: Program, plan: MemoryPlan) -> str:
    """The plan as an SVG document."""
    steps = max(sum(1 for _ in program.instructions()), 1)
    scale = _Scale(steps, max(plan.arena_bytes, plan.bound, 1))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {_FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN / 2:g}" font-size="15">{_title(plan)}</text>',
        *_grid(scale, steps),
        *(_draw_box(box, number, scale) for number, box in enumerate(plan_boxes(program, plan))),
        *_bound_line(scale, plan.bound),
        "</svg>",
        "",
    ]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Scale:
    """From instructions and bytes to pixels."""

    steps: int
    bytes: int

    def x(self, step: int) -> float:
        return MARGIN + step * (WIDTH - 2 * MARGIN) / self.steps

    def y(self, offset: int) -> float:
        return HEIGHT - MARGIN - offset * (HEIGHT - 2 * MARGIN) / self.bytes


def _title(plan: MemoryPlan) -> str:
    ratio = f", {plan.arena_bytes / plan.bound:.3f} of the bound" if plan.bound else ""
    return f"arena {_size(plan.arena_bytes)}{ratio}"


def _draw_box(box: Box, number: int, scale: _Scale) -> str:
    left, right = scale.x(box.begin), scale.x(box.end)
    top, bottom = scale.y(box.offset + box.size), scale.y(box.offset)
    name = escape(box.name)
    text = ""
    if right - left >= _LEAST_NAMED_WIDTH and bottom - top >= _LEAST_NAMED_HEIGHT:
        shown = escape(box.name[: int((right - left) / _CHARACTER_WIDTH)])
        text = f'<text x="{left + 4:.2f}" y="{(top + bottom) / 2 + 4:.2f}" fill="#ffffff">{shown}</text>'
    return (
        f"<g><title>{name}: {_size(box.size)} at {box.offset}, instructions {box.begin} to {box.end - 1}</title>"
        f'<rect x="{left:.2f}" y="{top:.2f}" width="{right - left:.2f}" height="{bottom - top:.2f}" '
        f'fill="{_COLORS[number % len(_COLORS)]}" stroke="#ffffff" stroke-width="0.5"/>{text}</g>'
    )


def _grid(scale: _Scale, steps: int) -> Iterable[str]:
    """Axes with a few numbers."""
    for line in range(_GRID_LINES + 1):
        offset = scale.bytes * line // _GRID_LINES
        y = scale.y(offset)
        yield f'<line x1="{MARGIN}" y1="{y:.2f}" x2="{WIDTH - MARGIN}" y2="{y:.2f}" stroke="#dddddd"/>'
        yield f'<text x="{MARGIN - 4}" y="{y + 4:.2f}" text-anchor="end">{_size(offset)}</text>'
        step = steps * line // _GRID_LINES
        yield f'<text x="{scale.x(step):.2f}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">{step}</text>'
    yield f'<text x="{WIDTH / 2:g}" y="{HEIGHT - MARGIN + 34}" text-anchor="middle">instruction</text>'


def _bound_line(scale: _Scale, bound: int) -> Iterable[str]:
    y = scale.y(bound)
    yield (
        f'<line x1="{MARGIN}" y1="{y:.2f}" x2="{WIDTH - MARGIN}" y2="{y:.2f}" stroke="#222222" stroke-dasharray="6 4">'
        f"<title>bound: {_size(bound)}</title></line>"
    )


def _size(count: int) -> str:
    for unit, name in _SCALES:
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"
