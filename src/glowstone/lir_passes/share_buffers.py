"""Lets results take the place of operands that die where the result is made."""

from __future__ import annotations

from glowstone.lir import Buffer, BufferKind, Instruction, Program, View
from glowstone.lir.overlap import same_elements
from glowstone.lir_passes.access_index import AccessIndex


def share_buffers(program: Program) -> bool:
    """Merge the buffer of an in-place result with that of the operand it replaces; returns whether any were."""
    index = AccessIndex(program)
    for instruction in index.instructions():
        for output, source in instruction.operation.in_place:
            _share(index, instruction, output, source)
    return index.commit()


def _share(index: AccessIndex, instruction: Instruction, output: int, source: int) -> None:
    result, operand = instruction.operands[output], instruction.operands[source]
    if not _can_merge(result, operand):
        return
    position = index.position(instruction)
    if index.uses(operand.buffer)[-1].position != position or index.uses(result.buffer)[0].position != position:
        return
    if _sharers(instruction, result.buffer) != {output}:
        return
    allowed = instruction.operation.in_place
    for other in _sharers(instruction, operand.buffer):
        if (output, other) not in allowed or not same_elements(instruction.operands[other], operand):
            return
    kept, merged = result.buffer, operand.buffer
    if kept.kind is BufferKind.ACTIVATION:
        kept, merged = merged, kept
    _rename(index, merged, kept)


def _can_merge(result: View, operand: View) -> bool:
    """Both views show the same part of buffers of the same kind of content, and the operand's may be overwritten."""
    first, second = result.buffer, operand.buffer
    if first is second or second.kind is not BufferKind.ACTIVATION:
        return False
    if first.kind not in (BufferKind.ACTIVATION, BufferKind.OUTPUT):
        return False
    same_content = (first.element, first.size, first.channels) == (second.element, second.size, second.channels)
    same_layout = first.channels is None or first.shape == second.shape
    moved = View(second, result.offset, result.shape, result.strides)
    return same_content and same_layout and same_elements(moved, operand)


def _sharers(instruction: Instruction, buffer: Buffer) -> set[int]:
    """Numbers of the operands in the buffer."""
    return {number for number, view in enumerate(instruction.operands) if view.buffer is buffer}


def _rename(index: AccessIndex, merged: Buffer, kept: Buffer) -> None:
    for use in list(index.uses(merged)):
        view = use.view
        index.set_operand(use, View(kept, view.offset, view.shape, view.strides))
