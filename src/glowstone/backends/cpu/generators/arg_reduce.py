"""Bodies that find positions of extrema: along rows in two passes, down columns in one."""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.order import Order
from glowstone.backends.cpu.generators.outer_loops import emit_columns, emit_rows, operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.generators.run_reduction import Monoid, emit_run_reduction
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.lir.operations import ArgReduce
from glowstone.types import ElementType

Y, X = range(2)
ONE = InnerStride.ONE


def _extremum(emitter: Emitter, element: ElementType, mode: str) -> Monoid:
    single = Arithmetic(emitter, element, 1)
    if mode == "max":
        return Monoid(lambda lanes: Arithmetic(emitter, element, lanes).lowest(), single.larger)
    return Monoid(lambda lanes: Arithmetic(emitter, element, lanes).highest(), single.smaller)


def _places(emitter: Emitter, start: Value, lanes: int) -> Value:
    """start, start + 1 ..."""
    if lanes == 1:
        return start
    steps = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
    return emitter.builder.add(emitter.splat(start, lanes), steps)


def emit_arg_rows(emitter: Emitter, operation: ArgReduce) -> None:
    """The extremum of a contiguous row, then the first or last position of it."""
    element = emitter.key.operands[X].element
    order = Order(emitter, element)
    position = _extremum(emitter, ElementType.I64, "max" if operation.last else "min")
    with emit_rows(emitter) as row:
        x = operand_at(emitter, X, 1, ONE, (0, row))
        length = emitter.extent(X, 1)
        best = emit_run_reduction(emitter, [x], length, x.load, _extremum(emitter, element, operation.mode))

        def term(index: Value, lanes: int, mask: Value | None) -> Value:
            is_best = order.is_equal(x.load(index, lanes, mask), emitter.splat(best, lanes))
            return emitter.select(is_best, _places(emitter, index, lanes), position.identity(lanes))

        found = emit_run_reduction(emitter, [x], length, term, position)
        operand_at(emitter, Y, 1, ONE, (0, row)).store(found, emitter.i64(0), 1)


def emit_arg_columns(emitter: Emitter, operation: ArgReduce) -> None:
    """A vector of columns at a time, each lane with the best so far and its position."""
    order = Order(emitter, emitter.key.operands[X].element)
    precedes = order.is_above if operation.mode == "max" else order.is_below
    with emit_columns(emitter) as (outer, column, columns):
        x = operand_at(emitter, X, 2, ONE, (0, outer), (2, column))
        y = operand_at(emitter, Y, 1, ONE, (0, outer), (1, column))

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            first = [x.load(index, lanes, mask), emitter.splat(emitter.i64(0), lanes)]
            with emitter.for_range(1, emitter.extent(X, 1), carried=first) as loop:
                best, place = loop.values
                value = _row(emitter, x, loop.index).load(index, lanes, mask)
                replaces = emitter.builder.not_(precedes(best, value)) if operation.last else precedes(value, best)
                here = emitter.splat(loop.index, lanes)
                loop.carry([emitter.select(replaces, value, best), emitter.select(replaces, here, place)])
            y.store(loop.results[1], index, lanes, mask)

        emit_row(emitter, [y, x], columns, emit_vectors)


def _row(emitter: Emitter, x: InnerOperand, step: Value) -> InnerOperand:
    return x.moved(emitter.mul(step, emitter.stride(X, 1)))
