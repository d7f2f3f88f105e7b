"""The loops of a `LoopNest` around the body of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.loop_nest import CHUNK, CHUNKS, FIRST_EXTENT, ROW_GROUPS, ROWS
from glowstone.backends.cpu.math.casts import storage_type

RowBody = Callable[[list[InnerOperand], Value], None]
"""Emits the work on one run of the inner axis: operands standing at its first element, and its length."""


@dataclass(frozen=True)
class NestWords:
    """The derived integers of a `LoopNest`, read from the call."""

    emitter: Emitter
    rank: int

    def extent(self, axis: int) -> Value:
        return self.emitter.derived(FIRST_EXTENT + axis % self.rank)

    def stride(self, operand: int, axis: int) -> Value:
        return self.emitter.derived(FIRST_EXTENT + self.rank * (1 + operand) + axis % self.rank)


def emit_nest(emitter: Emitter, rank: int, body: RowBody) -> None:
    """All units of this call."""
    words = NestWords(emitter, rank)
    count = len(emitter.key.operands)
    with emitter.for_units() as units:
        rest, chunk = emitter.divmod(units.index, emitter.derived(CHUNKS))
        outer, group = emitter.divmod(rest, emitter.derived(ROW_GROUPS))
        first_column = emitter.mul(chunk, emitter.derived(CHUNK))
        length = emitter.minimum(emitter.derived(CHUNK), emitter.sub(words.extent(-1), first_column))
        first_row = emitter.mul(group, emitter.derived(ROWS))
        last_row = emitter.minimum(emitter.add(first_row, emitter.derived(ROWS)), words.extent(-2))
        coordinates = emitter.unravel(outer, [words.extent(axis) for axis in range(rank - 2)]) if rank > 2 else []
        starts = [
            emitter.strided(
                emitter.pointer(operand),
                storage_type(emitter.key.operands[operand].element),
                *((place, words.stride(operand, axis)) for axis, place in enumerate(coordinates)),
                (first_column, words.stride(operand, -1)),
            )
            for operand in range(count)
        ]
        with emitter.for_range(first_row, last_row) as rows:
            operands = []
            for operand, start in enumerate(starts):
                key = emitter.key.operands[operand]
                pointer = emitter.strided(start, storage_type(key.element), (rows.index, words.stride(operand, -2)))
                operands.append(InnerOperand(emitter, key.element, key.inner, pointer, words.stride(operand, -1)))
            body(operands, length)
