"""Removes what is written and never read."""

from __future__ import annotations

from glowstone.lir import BufferKind, Control, Elementwise, Instruction, Program, View
from glowstone.lir_passes.access_index import AccessIndex


def eliminate_dead_stores(program: Program) -> bool:
    """Remove instructions, and outputs of elementwise ones, that nothing reads; returns whether any was."""
    index = AccessIndex(program)
    for instruction in index.instructions(backwards=True):
        if isinstance(instruction.operation, Control):
            continue
        outputs = instruction.outputs
        live = [_is_live(index, instruction, view) for view in outputs]
        if not any(live):
            index.remove(instruction)
        elif not all(live) and isinstance(instruction.operation, Elementwise):
            _keep_outputs(index, instruction, instruction.operation, live)
    return index.commit()


def _is_live(index: AccessIndex, instruction: Instruction, view: View) -> bool:
    """Whether a later instruction, or the caller, may read what is written into the view."""
    if not view.size:
        return False
    behind = index.position(instruction) + 1
    overwrite = index.first_overwrite(view, behind)
    read = index.first_read(view, behind)
    if read is not None:
        return overwrite is None or read.position < overwrite.position
    return overwrite is None and view.buffer.kind is not BufferKind.ACTIVATION


def _keep_outputs(index: AccessIndex, instruction: Instruction, operation: Elementwise, live: list[bool]) -> None:
    count = len(operation.expressions)
    expressions = tuple(value for value, keep in zip(operation.expressions, live, strict=True) if keep)
    outputs = tuple(view for view, keep in zip(instruction.operands[:count], live, strict=True) if keep)
    operands = (*outputs, *instruction.operands[count:])
    index.replace(instruction, Elementwise(expressions, operation.arity), operands)
