"""Bodies of copy and fill kernels."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.nest import Plane, emit_nest, emit_planes
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.generators.transpose import emit_transpose
from glowstone.backends.cpu.ir_types import Value, vector
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import storage_type
from glowstone.backends.cpu.math.vector_builder import splat

WIDEST_BLOCK = 8
"""Side of the blocks that are transposed in registers; larger ones do not fit the registers."""


def emit_copy(emitter: Emitter) -> None:
    """Rows of the target from rows of the source, of any strides."""

    def emit_run(operands: list[InnerOperand], length: Value | int) -> None:
        target, source = operands
        if source.inner is InnerStride.ZERO:
            single = source.load_single()
            emit_row(
                emitter,
                [target],
                length,
                lambda index, lanes, mask: target.store(source.spread(single, lanes), index, lanes, mask),
            )
        else:
            emit_row(
                emitter,
                operands,
                length,
                lambda index, lanes, mask: target.store(source.load(index, lanes, mask), index, lanes, mask),
            )

    emit_nest(emitter, emit_run)


def emit_fill(emitter: Emitter, bits: int) -> None:
    """The same bits in every element."""

    def emit_run(operands: list[InnerOperand], length: Value | int) -> None:
        (target,) = operands
        scalar = storage_type(target.element)
        emit_row(
            emitter,
            operands,
            length,
            lambda index, lanes, mask: target.store(splat(scalar, lanes, bits), index, lanes, mask),
        )

    emit_nest(emitter, emit_run)


def emit_transposing_copy(emitter: Emitter) -> None:
    """Elements side by side along a row in the target, and along a column in the source."""

    def emit_plane(operands: list[InnerOperand], plane: Plane) -> None:
        target, source = operands
        side = min(WIDEST_BLOCK, emitter.target.vector_bytes // target.element.size)
        rows = emitter.mul(emitter.div(plane.rows, side), side)
        columns = emitter.mul(emitter.div(plane.columns, side), side)
        with emitter.for_range(0, rows, side) as row, emitter.for_range(0, columns, side) as column:
            _transpose_block(emitter, target, source, plane, row.index, column.index, side)
        _copy_single(emitter, target, source, plane, (emitter.i64(0), rows), (columns, plane.columns))
        _copy_single(emitter, target, source, plane, (rows, plane.rows), (emitter.i64(0), plane.columns))

    emit_planes(emitter, emit_plane)


def _transpose_block(
    emitter: Emitter, target: InnerOperand, source: InnerOperand, plane: Plane, row: Value, column: Value, side: int
) -> None:
    scalar, size = storage_type(target.element), target.element.size
    vectors = [
        emitter.load(
            emitter.strided(source.pointer, scalar, (emitter.add(column, step), source.stride), (row, 1)),
            vector(scalar, side),
            size,
        )
        for step in range(side)
    ]
    for step, line in enumerate(emit_transpose(emitter, vectors)):
        place = emitter.strided(target.pointer, scalar, (emitter.add(row, step), plane.row_strides[0]), (column, 1))
        emitter.store(line, place, size)


def _copy_single(
    emitter: Emitter,
    target: InnerOperand,
    source: InnerOperand,
    plane: Plane,
    rows: tuple[Value, Value],
    columns: tuple[Value, Value],
) -> None:
    """Element by element, in a range of rows and columns."""
    with emitter.for_range(*rows) as row, emitter.for_range(*columns) as column:
        to, start = (
            operand.moved(emitter.mul(row.index, stride))
            for operand, stride in zip((target, source), plane.row_strides, strict=True)
        )
        to.store(start.load(column.index, 1), column.index, 1)
