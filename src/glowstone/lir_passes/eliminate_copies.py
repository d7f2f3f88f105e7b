"""Removes copies, by letting the instructions around them name the other side.

Three ways, in this order: the copy moves nothing; its readers can read the source; its producer can write the
destination. Each is taken only if every operation concerned accepts the new strides and no vectorised access becomes a
strided one.
"""

from __future__ import annotations

from glowstone.lir import Access, Buffer, BufferKind, Control, Copy, Instruction, Program, View
from glowstone.lir.overlap import rebase, same_elements
from glowstone.lir_passes.access_index import AccessIndex, Use


def eliminate_copies(program: Program) -> bool:
    """Remove the copies that the instructions around them can do without; returns whether any was."""
    index = AccessIndex(program)
    for copy in index.instructions():
        if isinstance(copy.operation, Copy):
            _eliminate(index, copy)
    return index.commit()


def _eliminate(index: AccessIndex, copy: Instruction) -> bool:
    return _moves_nothing(index, copy) or _read_the_source(index, copy) or _write_the_destination(index, copy)


def _moves_nothing(index: AccessIndex, copy: Instruction) -> bool:
    """Nothing to copy, or source and destination are the same."""
    destination, source = copy.operands
    if destination.size and not same_elements(destination, source):
        return False
    index.remove(copy)
    return True


def _read_the_source(index: AccessIndex, copy: Instruction) -> bool:
    """Backward: all readers of the destination read the source instead.

    The copy must be the destination's only writer, and the source unchanged until the last reader is done.
    """
    destination, source = copy.operands
    if destination.buffer.kind is not BufferKind.ACTIVATION or len(index.writes(destination.buffer)) != 1:
        return False
    reads = index.reads(destination.buffer)
    begin = index.position(copy) + 1
    if not reads or index.is_written(source, begin, reads[-1].position + 1):
        return False
    return _rewrite(index, copy, reads, destination, source)


def _write_the_destination(index: AccessIndex, copy: Instruction) -> bool:
    """Forward: the producer of the source writes the destination itself, and other readers read it there.

    The source must have one writer; nothing may touch the destination from the producer to the copy, or write it before
    the last reader. Other readers would let the destination live longer: only where that takes no memory.
    """
    destination, source = copy.operands
    if source.buffer.kind is not BufferKind.ACTIVATION or len(index.writes(source.buffer)) != 1:
        return False
    uses = [use for use in index.uses(source.buffer) if use.instruction is not copy]
    if not uses or not _is_written_once(uses, source):
        return False
    if len(uses) > 1 and not _costs_no_memory(destination.buffer, source.buffer):
        return False
    first, here, last = uses[0].position, index.position(copy), uses[-1].position
    if index.is_used(destination, first, here) or index.is_written(destination, here + 1, last + 1):
        return False
    return _rewrite(index, copy, uses, source, destination)


def _is_written_once(uses: list[Use], view: View) -> bool:
    """Whether the first use, and no other, writes: all of the view at least."""
    first, *others = uses
    return first.access is Access.OUT and first.view.size == view.size and not any(use.access.writes for use in others)


def _costs_no_memory(destination: Buffer, source: Buffer) -> bool:
    """Whether the destination may live as long as both without taking more of the arena."""
    return destination.kind in (BufferKind.OUTPUT, BufferKind.WINDOW) or destination.size == source.size


def _rewrite(index: AccessIndex, copy: Instruction, uses: list[Use], old: View, new: View) -> bool:
    """Let all the uses of `old` name `new`, and remove the copy; or, where one cannot, do nothing."""
    views = [rebase(use.view, old, new) for use in uses]
    replaced: list[tuple[Use, View]] = []
    for use, view in zip(uses, views, strict=True):
        if view is None or not _fits(use, view):
            return False
        replaced.append((use, view))
    index.remove(copy)
    for use, view in replaced:
        index.set_operand(use, view)
    return True


def _fits(use: Use, view: View) -> bool:
    """Whether the operation takes the view for this operand, and not slower than the one it has."""
    operation = use.instruction.operation
    if isinstance(operation, Control):  # the value is used in other regions than its copy
        return False
    if not operation.accepts(use.operand, view):
        return False
    return operation.is_fast(use.operand, view) or not operation.is_fast(use.operand, use.view)
