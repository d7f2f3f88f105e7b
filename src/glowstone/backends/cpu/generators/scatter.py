"""Bodies of kernels that read and write single elements, or rows, at places that data names."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import FALSE, Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.indexing import checked_index, clamped_index, emit_lines
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import emit_columns, operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.lir.operations.scatter import GatherElements, ScatterElements, ScatterND
from glowstone.types import ElementType

Y = 0
GATHERED, GATHER_INDICES = 1, 2
SCATTER_INDICES, UPDATES = 1, 2
Places = list[tuple[int, Value]]
"""(axis, index) pairs."""


def emit_gather_elements(emitter: Emitter, operation: GatherElements) -> None:
    """Row by row of y, element by element."""
    axis = operation.axis
    rank = emitter.key.operands[Y].rank
    last = rank - 1
    with emit_lines(emitter, [emitter.extent(Y, place) for place in range(last)]) as (unit, coordinates):
        places: Places = list(enumerate(coordinates))
        y, indices = (
            operand_at(emitter, operand, last, emitter.key.operands[operand].inner, *places)
            for operand in (Y, GATHER_INDICES)
        )
        others = [(place, index) for place, index in places if place != axis]
        x = operand_at(emitter, GATHERED, axis, InnerStride.ANY, *others)
        with emitter.for_range(0, emitter.extent(Y, last)) as loop:
            extent = emitter.extent(GATHERED, axis)
            if operation.checked:
                index, _ = checked_index(emitter, indices, loop.index, extent, unit)
            else:
                index = clamped_index(emitter, indices, loop.index, extent)
            row = x if axis == last else x.moved(emitter.mul(loop.index, emitter.stride(GATHERED, last)))
            y.store(row.load(index, 1), loop.index, 1)


def emit_gather_nd(emitter: Emitter) -> None:
    """Row by row of y."""
    picks, length = emitter.extent(Y, 1), emitter.extent(Y, 2)
    depth = emitter.key.operands[GATHERED].rank - 2
    with emit_lines(emitter, [emitter.extent(Y, 0), picks]) as (unit, (batch, pick)):
        indices = operand_at(emitter, GATHER_INDICES, 2, InnerStride.ANY, (0, batch), (1, pick))
        places: Places = [(0, batch)]
        for number in range(depth):
            extent = emitter.extent(GATHERED, 1 + number)
            places.append((1 + number, checked_index(emitter, indices, emitter.i64(number), extent, unit)[0]))
        x = operand_at(emitter, GATHERED, 1 + depth, InnerStride.ONE, *places)
        y = operand_at(emitter, Y, 2, InnerStride.ONE, (0, batch), (1, pick))

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            y.store(x.load(index, lanes, mask), index, lanes, mask)

        emit_row(emitter, [y, x], length, emit_vectors)


def emit_scatter_elements(emitter: Emitter, operation: ScatterElements) -> None:
    """Line by line along the axis."""
    axis, rank = operation.axis, emitter.key.operands[Y].rank
    others = [place for place in range(rank) if place != axis]
    with emit_lines(emitter, [emitter.extent(SCATTER_INDICES, place) for place in others]) as (unit, coordinates):
        places = list(zip(others, coordinates, strict=True))
        y, indices, updates = (
            operand_at(emitter, operand, axis, InnerStride.ANY, *places) for operand in (Y, SCATTER_INDICES, UPDATES)
        )
        with emitter.for_range(0, emitter.extent(SCATTER_INDICES, axis)) as loop:
            index, is_bad = checked_index(emitter, indices, loop.index, emitter.extent(Y, axis), unit)
            with emitter.if_true(emitter.builder.not_(is_bad), likely=True):
                update = updates.load(loop.index, 1)
                y.store(_combined(emitter, operation.reduction, y, index, update, 1, None), index, 1)


def emit_scatter_nd(emitter: Emitter, operation: ScatterND) -> None:
    """All updates in order, of some columns."""
    depth = emitter.key.operands[Y].rank - 1
    with emit_columns(emitter) as (_, column, columns), emitter.for_range(0, emitter.extent(UPDATES, 0)) as rows:
        indices = operand_at(emitter, SCATTER_INDICES, 1, InnerStride.ANY, (0, rows.index))
        places: Places = [(depth, column)]
        is_bad: Value = FALSE
        for number in range(depth):
            extent = emitter.extent(Y, number)
            index, bad = checked_index(emitter, indices, emitter.i64(number), extent, column)
            places.append((number, index))
            is_bad = emitter.builder.or_(is_bad, bad)
        updates = operand_at(emitter, UPDATES, 1, InnerStride.ONE, (0, rows.index), (1, column))
        length = emitter.select(is_bad, emitter.i64(0), columns)
        y = operand_at(emitter, Y, depth, InnerStride.ONE, *places)

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            update = updates.load(index, lanes, mask)
            y.store(_combined(emitter, operation.reduction, y, index, update, lanes, mask), index, lanes, mask)

        emit_row(emitter, [y, updates], length, emit_vectors)


def _combined(
    emitter: Emitter, reduction: str, y: InnerOperand, index: Value, update: Value, lanes: int, mask: Value | None
) -> Value:
    """What to store at an index of y."""
    if reduction == "none":
        return update
    before = y.load(index, lanes, mask)
    builder = emitter.builder
    if y.element is ElementType.BOOL:
        return (builder.or_ if reduction in ("add", "max") else builder.and_)(before, update)
    arithmetic = Arithmetic(emitter, y.element, lanes)
    combine = {
        "add": arithmetic.add,
        "mul": arithmetic.multiply,
        "max": arithmetic.larger,
        "min": arithmetic.smaller,
    }[reduction]
    return arithmetic.rounded(combine(before, update))
