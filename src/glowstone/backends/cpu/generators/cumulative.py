"""Bodies of running sums and products: element by element along rows, a vector of columns at a time."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.outer_loops import emit_columns, emit_rows, operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.lir.operations import Cumulative

Y, X = range(2)
ONE = InnerStride.ONE
Load = Callable[[Value], Value]
Store = Callable[[Value, Value], None]


def emit_cumulative_rows(emitter: Emitter, operation: Cumulative) -> None:
    """Along rows of contiguous elements."""
    with emit_rows(emitter) as row:
        y, x = (operand_at(emitter, operand, 1, ONE, (0, row)) for operand in (Y, X))
        _accumulate(
            emitter, operation, 1, lambda place: x.load(place, 1), lambda place, total: y.store(total, place, 1)
        )


def emit_cumulative_columns(emitter: Emitter, operation: Cumulative) -> None:
    """Down columns, a vector of them at a time."""
    with emit_columns(emitter) as (outer, column, columns):
        y, x = (operand_at(emitter, operand, 2, ONE, (0, outer), (2, column)) for operand in (Y, X))

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            def load(place: Value) -> Value:
                return x.moved(emitter.mul(place, emitter.stride(X, 1))).load(index, lanes, mask)

            def store(place: Value, total: Value) -> None:
                y.moved(emitter.mul(place, emitter.stride(Y, 1))).store(total, index, lanes, mask)

            _accumulate(emitter, operation, lanes, load, store)

        emit_row(emitter, [y, x], columns, emit_vectors)


def _accumulate(emitter: Emitter, operation: Cumulative, lanes: int, load: Load, store: Store) -> None:
    """16-bit floats are carried in float32 and rounded where they are stored."""
    arithmetic = Arithmetic(emitter, emitter.key.operands[X].element, lanes)
    combine = arithmetic.add if operation.mode == "sum" else arithmetic.multiply
    length = emitter.extent(X, 1)
    identity = arithmetic.constant(0 if operation.mode == "sum" else 1)
    with emitter.for_range(0, length, carried=[identity]) as loop:
        place = emitter.sub(emitter.sub(length, 1), loop.index) if operation.reverse else loop.index
        before = loop.values[0]
        total = combine(before, load(place))
        store(place, arithmetic.rounded(before if operation.exclusive else total))
        loop.carry([total])
