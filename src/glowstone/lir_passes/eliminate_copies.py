"""Removes copies, by letting the instructions around them name the other side.

Three ways, in this order: the copy moves nothing; its readers can read the source; its producer can write the
destination. Each is taken only if every operation concerned accepts the new strides and no vectorised access becomes a
strided one.
"""

from __future__ import annotations

from glowstone.lir import BufferKind, Copy, Instruction, Program, View
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
    views = [rebase(use.view, destination, source) for use in reads]
    replaced: list[tuple[Use, View]] = []
    for use, view in zip(reads, views, strict=True):
        if view is None or not _fits(use, view):
            return False
        replaced.append((use, view))
    index.remove(copy)
    for use, view in replaced:
        index.set_operand(use, view)
    return True


def _write_the_destination(index: AccessIndex, copy: Instruction) -> bool:
    """Forward: the producer of the source writes the destination itself.

    The source must have one writer and no reader but the copy; nothing may touch the destination from the producer on.
    """
    destination, source = copy.operands
    if source.buffer.kind is not BufferKind.ACTIVATION or len(index.uses(source.buffer)) != 2:
        return False
    producer = index.uses(source.buffer)[0]
    if producer.access.reads or producer.instruction is copy:
        return False
    written = rebase(producer.view, source, destination)
    if written is None or producer.view.size != source.size:
        return False
    if not _fits(producer, written) or index.is_used(destination, producer.position, index.position(copy)):
        return False
    index.remove(copy)
    index.set_operand(producer, written)
    return True


def _fits(use: Use, view: View) -> bool:
    """Whether the operation takes the view for this operand, and not slower than the one it has."""
    operation = use.instruction.operation
    if not operation.accepts(use.operand, view):
        return False
    return operation.is_fast(use.operand, view) or not operation.is_fast(use.operand, use.view)
