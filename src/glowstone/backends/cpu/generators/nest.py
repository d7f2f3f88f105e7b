"""The loops of a `LoopNest` around the body of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.loop_nest import ANY_LENGTH, CHUNK, CHUNKS, FIRST_EXTENT, ROW_GROUPS, ROWS
from glowstone.backends.cpu.math.casts import storage_type

RowBody = Callable[[list[InnerOperand], Value | int], None]
"""Emits the work on one run of the inner axis: operands standing at its first element, and its length,
a number where that is compiled in."""
PlaneBody = Callable[[list[InnerOperand], "Plane"], None]
"""Emits the work on the rows of one unit: operands standing at the first element of the first."""


@dataclass(frozen=True)
class Plane:
    """Rows and columns of a unit, and for every operand the stride from row to row."""

    rows: Value
    columns: Value
    row_strides: list[Value]


@dataclass(frozen=True)
class NestWords:
    """The derived integers of a `LoopNest`, read from the call."""

    emitter: Emitter
    rank: int

    def extent(self, axis: int) -> Value:
        return self.emitter.derived(FIRST_EXTENT + axis % self.rank)

    def stride(self, operand: int, axis: int) -> Value:
        return self.emitter.derived(FIRST_EXTENT + self.rank * (1 + operand) + axis % self.rank)


def emit_nest(emitter: Emitter, body: RowBody) -> None:
    """All units of this call, row by row."""
    fixed = int(emitter.key.variant[1])

    def emit_rows(operands: list[InnerOperand], plane: Plane) -> None:
        with emitter.for_range(0, plane.rows) as rows:
            standing = (
                operand.moved(emitter.mul(rows.index, stride))
                for operand, stride in zip(operands, plane.row_strides, strict=True)
            )
            body(list(standing), plane.columns if fixed == ANY_LENGTH else fixed)

    emit_planes(emitter, emit_rows)


def emit_planes(emitter: Emitter, body: PlaneBody) -> None:
    """All units of this call."""
    rank = int(emitter.key.variant[0])
    words = NestWords(emitter, rank)
    with emitter.for_units() as units:
        rest, chunk = emitter.divmod(units.index, emitter.derived(CHUNKS))
        outer, group = emitter.divmod(rest, emitter.derived(ROW_GROUPS))
        column = emitter.mul(chunk, emitter.derived(CHUNK))
        row = emitter.mul(group, emitter.derived(ROWS))
        coordinates = emitter.unravel(outer, [words.extent(axis) for axis in range(rank - 2)]) if rank > 2 else []
        operands = [
            _standing_at(emitter, words, operand, [*coordinates, row, column])
            for operand in range(len(emitter.key.operands))
        ]
        plane = Plane(
            emitter.minimum(emitter.derived(ROWS), emitter.sub(words.extent(-2), row)),
            emitter.minimum(emitter.derived(CHUNK), emitter.sub(words.extent(-1), column)),
            [words.stride(operand, -2) for operand in range(len(operands))],
        )
        body(operands, plane)


def _standing_at(emitter: Emitter, words: NestWords, operand: int, coordinates: list[Value]) -> InnerOperand:
    key = emitter.key.operands[operand]
    terms = ((place, words.stride(operand, axis)) for axis, place in enumerate(coordinates))
    pointer = emitter.strided(emitter.pointer(operand), storage_type(key.element), *terms)
    return InnerOperand(emitter, key.element, key.inner, pointer, words.stride(operand, -1))
