"""Bodies of matrix products of any element type and strides: one row of results at a time."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.casts import storage_type
from glowstone.backends.cpu.vector_math import emit_expression
from glowstone.scalar import Expression

Y, A, B, FIRST_EXTRA = range(4)
ROWS_PER_UNIT, ROW_CHUNKS = range(2)


def emit_plain_matmul(emitter: Emitter, epilogue: Expression | None) -> None:
    """Units are (batch, rows)."""
    count = len(emitter.key.operands)
    with emitter.for_units() as units:
        batch, chunk = emitter.divmod(units.index, emitter.derived(ROW_CHUNKS))
        axes = range(emitter.key.operands[Y].rank - 2)
        places = emitter.unravel(batch, [emitter.extent(Y, axis) for axis in axes]) if axes else []
        first = emitter.mul(chunk, emitter.derived(ROWS_PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(ROWS_PER_UNIT)), emitter.extent(Y, -2))
        starts = [_operand(emitter, operand, places) for operand in range(count)]
        with emitter.for_range(first, last) as rows:
            _emit_result_row(emitter, starts, rows.index, epilogue)


def _operand(emitter: Emitter, operand: int, places: list[Value]) -> InnerOperand:
    """An operand at the start of a batch."""
    key = emitter.key.operands[operand]
    terms = ((place, emitter.stride(operand, axis)) for axis, place in enumerate(places))
    pointer = emitter.strided(emitter.pointer(operand), storage_type(key.element), *terms)
    return InnerOperand(emitter, key.element, key.inner, pointer, emitter.stride(operand, -1))


def _emit_result_row(emitter: Emitter, starts: list[InnerOperand], row: Value, epilogue: Expression | None) -> None:
    a = starts[A].moved(emitter.mul(row, emitter.stride(A, -2)))
    b = starts[B]
    outputs = [Y, *range(FIRST_EXTRA, len(starts))]
    y, *extras = (starts[operand].moved(emitter.mul(row, emitter.stride(operand, -2))) for operand in outputs)

    def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
        arithmetic = Arithmetic(emitter, y.element, lanes)
        with emitter.for_range(0, emitter.extent(A, -1), carried=[arithmetic.constant(0)]) as loop:
            element = a.spread(a.moved(emitter.mul(loop.index, a.stride)).load_single(), lanes)
            columns = b.moved(emitter.mul(loop.index, emitter.stride(B, -2))).load(index, lanes, mask)
            loop.carry([arithmetic.multiply_add(element, columns, loop.values[0])])
        result = arithmetic.rounded(loop.results[0])
        if epilogue is not None:
            inputs = [result, *(extra.load(index, lanes, mask) for extra in extras)]
            result = emit_expression(emitter, epilogue, inputs, lanes)
        y.store(result, index, lanes, mask)

    emit_row(emitter, [y, b, *extras], emitter.extent(Y, -1), emit_vectors)
