"""Bodies of reductions: along rows, or down columns with a vector of columns at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import emit_columns, emit_rows, operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.generators.run_reduction import Monoid, emit_run_reduction
from glowstone.backends.cpu.ir_types import Value, scalar_of
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import emit_cast
from glowstone.backends.cpu.vector_math import emit_expression
from glowstone.lir.operations import Reduce
from glowstone.types import ElementType

Y, X, FIRST_EXTRA = range(3)
COLUMN_CHUNK = 128
"""Elements of a column whose sum is carried apart."""
COLUMN_UNROLL = 2
"""Elements of a column taken at a time, each into a sum of its own."""
COLUMN_WIDTHS = (2, 1)
"""Vectors of columns at a time; the blocked layout often has just one."""


class _Reduction:
    """What one mode does to numbers of one element type."""

    def __init__(self, emitter: Emitter, operation: Reduce, element: ElementType) -> None:
        self._emitter = emitter
        self._mode = operation.mode
        self._epilogue = operation.epilogue
        self._element = element
        is_integer_mean = operation.mode == "mean" and not element.is_float
        self._carried = ElementType.I64 if is_integer_mean else element

    def monoid(self) -> Monoid:
        single = self._arithmetic(1)
        if self._mode == "max":
            return Monoid(lambda lanes: self._arithmetic(lanes).lowest(), single.larger)
        if self._mode == "min":
            return Monoid(lambda lanes: self._arithmetic(lanes).highest(), single.smaller)
        if self._mode == "prod":
            return Monoid(lambda lanes: self._arithmetic(lanes).constant(1), single.multiply)
        return Monoid(lambda lanes: self._arithmetic(lanes).constant(0), single.add)

    def _arithmetic(self, lanes: int) -> Arithmetic:
        return Arithmetic(self._emitter, self._carried, lanes)

    def load(self, x: InnerOperand, index: Value, lanes: int, mask: Value | None) -> Value:
        return emit_cast(self._emitter, x.load(index, lanes, mask), self._element, self._carried, lanes)

    def finish(self, total: Value, count: Value, extras: list[Value], lanes: int) -> Value:
        """The result to store."""
        emitter = self._emitter
        if self._mode == "mean":
            total = self._divided(total, count, lanes)
        result = Arithmetic(emitter, self._element, lanes).rounded(total)
        if self._epilogue is None:
            return result
        return emit_expression(emitter, self._epilogue, [result, *extras], lanes)

    def _divided(self, total: Value, count: Value, lanes: int) -> Value:
        emitter, element = self._emitter, self._element
        if not element.is_float:
            total = emit_cast(emitter, total, ElementType.I64, ElementType.F64, lanes)
        number = emitter.splat(emitter.builder.sitofp(count, scalar_of(total.type)), lanes)
        mean = emitter.builder.fdiv(total, number)
        return mean if element.is_float else emit_cast(emitter, mean, ElementType.F64, element, lanes)


def emit_reduce_rows(emitter: Emitter, operation: Reduce) -> None:
    """One result per row of contiguous elements."""
    count = len(emitter.key.operands)
    reduction = _Reduction(emitter, operation, emitter.key.operands[X].element)
    with emit_rows(emitter) as row:
        x = operand_at(emitter, X, 1, InnerStride.ONE, (0, row))
        length = emitter.extent(X, 1)

        def term(index: Value, lanes: int, mask: Value | None) -> Value:
            return reduction.load(x, index, lanes, mask)

        total = emit_run_reduction(emitter, [x], length, term, reduction.monoid())
        y, *extras = (
            operand_at(emitter, operand, 1, InnerStride.ONE, (0, row)) for operand in (Y, *range(FIRST_EXTRA, count))
        )
        result = reduction.finish(total, length, [extra.load_single() for extra in extras], 1)
        y.store(result, emitter.i64(0), 1)


def emit_reduce_columns(emitter: Emitter, operation: Reduce) -> None:
    """Vectors of results, each lane down its own column."""
    count = len(emitter.key.operands)
    reduction = _Reduction(emitter, operation, emitter.key.operands[X].element)
    monoid = reduction.monoid()
    with emit_columns(emitter) as (outer, column, columns):
        x = operand_at(emitter, X, 2, InnerStride.ONE, (0, outer), (2, column))
        y, *extras = (
            operand_at(emitter, operand, 1, emitter.key.operands[operand].inner, (0, outer), (1, column))
            for operand in (Y, *range(FIRST_EXTRA, count))
        )
        length = emitter.extent(X, 1)

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            def term(step: Value) -> Value:
                place = x.moved(emitter.mul(step, emitter.stride(X, 1)))
                return reduction.load(place, index, lanes, mask)

            total = _reduce_column(emitter, length, term, monoid, lanes)
            loaded = [extra.load(index, lanes, mask) for extra in extras]
            y.store(reduction.finish(total, length, loaded, lanes), index, lanes, mask)

        emit_row(emitter, [y, x, *extras], columns, emit_vectors, COLUMN_WIDTHS)


def _reduce_column(
    emitter: Emitter, length: Value, term: Callable[[Value], Value], monoid: Monoid, lanes: int
) -> Value:
    """The reduction of `term(step)` over all steps, in chunks."""
    with emitter.for_range(0, length, COLUMN_CHUNK, [monoid.identity(lanes)]) as chunks:
        end = emitter.minimum(length, emitter.add(chunks.index, COLUMN_CHUNK))
        steps = emitter.div(emitter.sub(end, chunks.index), COLUMN_UNROLL)
        whole = emitter.add(chunks.index, emitter.mul(steps, COLUMN_UNROLL))
        identities = [monoid.identity(lanes)] * COLUMN_UNROLL
        with emitter.for_range(chunks.index, whole, COLUMN_UNROLL, identities) as loop:
            terms = [term(emitter.add(loop.index, number)) for number in range(COLUMN_UNROLL)]
            loop.carry([monoid.combine(total, value) for total, value in zip(loop.values, terms, strict=True)])
        joined = functools.reduce(monoid.combine, loop.results)
        with emitter.for_range(whole, end, carried=[joined]) as rest:
            rest.carry([monoid.combine(rest.values[0], term(rest.index))])
        chunks.carry([monoid.combine(chunks.values[0], rest.results[0])])
    return chunks.results[0]
