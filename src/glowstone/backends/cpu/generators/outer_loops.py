"""Loops over the units of kernels on [outer, length] and [outer, length, inner]."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import storage_type

ROWS_PER_UNIT = 0
COLUMNS_PER_UNIT, CHUNKS = range(2)


@contextmanager
def emit_rows(emitter: Emitter) -> Iterator[Value]:
    """Every row (position of axis 0 of operand 0) of this call's units."""
    with emitter.for_units() as units:
        first = emitter.mul(units.index, emitter.derived(ROWS_PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(ROWS_PER_UNIT)), emitter.extent(0, 0))
        with emitter.for_range(first, last) as rows:
            yield rows.index


@contextmanager
def emit_columns(emitter: Emitter) -> Iterator[tuple[Value, Value, Value]]:
    """Of every unit of this call: outer position, first column and number of columns (the last axis of operand 0)."""
    with emitter.for_units() as units:
        outer, chunk = emitter.divmod(units.index, emitter.derived(CHUNKS))
        first = emitter.mul(chunk, emitter.derived(COLUMNS_PER_UNIT))
        yield (
            outer,
            first,
            emitter.minimum(emitter.derived(COLUMNS_PER_UNIT), emitter.sub(emitter.extent(0, -1), first)),
        )


def operand_at(
    emitter: Emitter, operand: int, along: int, inner: InnerStride, *places: tuple[int, Value]
) -> InnerOperand:
    """An operand to be run through along an axis, standing at places (axis, index) of others."""
    element = emitter.key.operands[operand].element
    terms = ((index, emitter.stride(operand, axis)) for axis, index in places)
    pointer = emitter.strided(emitter.pointer(operand), storage_type(element), *terms)
    return InnerOperand(emitter, element, inner, pointer, emitter.stride(operand, along))


def flat_operand(emitter: Emitter, operand: int) -> InnerOperand:
    """A contiguous operand, to be run through in row-major order."""
    element = emitter.key.operands[operand].element
    return InnerOperand(emitter, element, InnerStride.ONE, emitter.pointer(operand), emitter.i64(1))
