"""Lifetime marks: where activation buffers begin and cease to hold memory."""

from __future__ import annotations

from glowstone.lir.buffer import Buffer, BufferKind
from glowstone.lir.instruction import Instruction
from glowstone.lir.program import Alloc, Dealloc, Program, Statement


def place_lifetimes(program: Program) -> bool:
    """Put each activation buffer's `Alloc` right before its first use and its `Dealloc` right after its last.

    Marks that were there are replaced; those of unused buffers go. Returns whether the body changed.
    """
    instructions = list(program.instructions())
    first: dict[Buffer, Instruction] = {}
    last: dict[Buffer, Instruction] = {}
    for instruction in instructions:
        for view in instruction.operands:
            if view.buffer.kind is BufferKind.ACTIVATION:
                first.setdefault(view.buffer, instruction)
                last[view.buffer] = instruction
    begins: dict[Instruction, list[Buffer]] = {}
    ends: dict[Instruction, list[Buffer]] = {}
    for buffer, instruction in first.items():
        begins.setdefault(instruction, []).append(buffer)
        ends.setdefault(last[buffer], []).append(buffer)
    body: list[Statement] = []
    for instruction in instructions:
        body += (Alloc(buffer) for buffer in begins.get(instruction, ()))
        body.append(instruction)
        body += (Dealloc(buffer) for buffer in ends.get(instruction, ()))
    changed = body != program.body
    program.body[:] = body
    return changed
