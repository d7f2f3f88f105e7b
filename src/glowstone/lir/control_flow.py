"""Regions of a program: what stands between the borders that control instructions are.

In: a program. Out: its regions, and a check that every border names the buffers that live across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from glowstone.lir.buffer import Buffer
from glowstone.lir.instruction import Instruction
from glowstone.lir.operation import Access
from glowstone.lir.operations.control import Branch, Control, Join, LoopBegin, LoopEnd, Otherwise

_ENDS: dict[type[Control], type[Control]] = {LoopEnd: LoopBegin, Otherwise: Branch, Join: Otherwise}
"""What may end the region that a control instruction of the other class begins."""


@dataclass(frozen=True)
class Region:
    """From the instruction at position `begin` to that at `end`, both control instructions."""

    begin: int
    end: int


def regions(instructions: Sequence[Instruction]) -> list[Region]:
    """All regions, inner ones first.

    Raises:
        ValueError: borders that do not match.
    """
    result: list[Region] = []
    open_at: list[int] = []
    for position, instruction in enumerate(instructions):
        operation = instruction.operation
        beginning = _ENDS.get(type(operation)) if isinstance(operation, Control) else None
        if beginning is not None:
            if not open_at or type(instructions[open_at[-1]].operation) is not beginning:
                raise ValueError(f"{operation.name} at instruction {position} ends no {beginning.__name__}")
            result.append(Region(open_at.pop(), position))
        if isinstance(operation, LoopBegin | Branch | Otherwise) and not isinstance(operation, Join):
            open_at.append(position)
    if open_at:
        raise ValueError(f"{instructions[open_at[-1]].operation.name} at instruction {open_at[-1]} has no end")
    return result


def verify_regions(instructions: Sequence[Instruction]) -> None:
    """Check that borders match, and that each names what is used on both sides of it.

    Raises:
        ValueError: the first rule broken.
    """
    used = _uses(instructions)
    for region in regions(instructions):
        inside = _accesses(instructions[region.begin + 1 : region.end])
        for buffer, access in inside.items():
            if all(region.begin <= position <= region.end for position in used[buffer]):
                continue
            for border in (instructions[region.begin], instructions[region.end]):
                if not _covers(border, buffer, access):
                    raise ValueError(f"{border.operation.name} does not name {buffer.name}, which lives across it")


def crossing(
    inside: Iterable[Instruction], before: Iterable[Instruction], behind: Iterable[Buffer]
) -> dict[Buffer, Access]:
    """Buffers that may be written and live across a region's border, in order of use: how the region uses them.

    Args:
        inside: the region's instructions.
        before: those that stand before it.
        behind: buffers that are used behind it.
    """
    others = {view.buffer for instruction in before for view in instruction.operands}.union(behind)
    return {buffer: access for buffer, access in _accesses(inside).items() if buffer in others}


def _accesses(instructions: Iterable[Instruction]) -> dict[Buffer, Access]:
    """How instructions use buffers that are not read-only: read, or read and written."""
    result: dict[Buffer, Access] = {}
    for instruction in instructions:
        for view, access in instruction.accessed():
            if not view.buffer.kind.is_read_only:
                known = result.setdefault(view.buffer, Access.IN)
                result[view.buffer] = Access.INOUT if access.writes else known
    return result


def _uses(instructions: Sequence[Instruction]) -> dict[Buffer, list[int]]:
    result: dict[Buffer, list[int]] = {}
    for position, instruction in enumerate(instructions):
        for view in instruction.operands:
            result.setdefault(view.buffer, []).append(position)
    return result


def _covers(border: Instruction, buffer: Buffer, access: Access) -> bool:
    return any(view.buffer is buffer and (named.writes or not access.writes) for view, named in border.accessed())
