"""Bodies of determinants: Gaussian elimination with the largest pivot of each column, in float64."""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import F64, Value
from glowstone.backends.cpu.math.casts import emit_cast, emit_from_storage, emit_to_storage, storage_type
from glowstone.types import ElementType

Y, X = range(2)
PER_UNIT = 0
WORD_BYTES = 8


def emit_determinant(emitter: Emitter) -> None:
    """Units are ranges of matrices."""
    with emitter.for_units() as units:
        first = emitter.mul(units.index, emitter.derived(PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(PER_UNIT)), emitter.extent(Y, 0))
        with emitter.for_range(first, last) as matrices:
            _emit_copy(emitter, matrices.index)
            _emit_store(emitter, matrices.index, _emit_elimination(emitter))


def _emit_copy(emitter: Emitter, matrix: Value) -> None:
    """The matrix as float64, row by row in scratch."""
    element = emitter.key.operands[X].element
    kind, size = storage_type(element), emitter.extent(X, 1)
    with emitter.for_range(0, size) as rows, emitter.for_range(0, size) as columns:
        terms = [(place, emitter.stride(X, axis)) for axis, place in enumerate((matrix, rows.index, columns.index))]
        stored = emitter.load(emitter.strided(emitter.pointer(X), kind, *terms), kind, element.size)
        number = emit_from_storage(emitter, stored, element, 1)
        wide = emit_cast(emitter, number, element, ElementType.F64, 1)
        emitter.store(wide, _place(emitter, rows.index, columns.index), WORD_BYTES)


def _place(emitter: Emitter, row: Value, column: Value) -> Value:
    """Address of an element of the copy."""
    return emitter.offset(emitter.scratch, emitter.add(emitter.mul(row, emitter.extent(X, 1)), column), F64)


def _load(emitter: Emitter, row: Value, column: Value) -> Value:
    return emitter.load(_place(emitter, row, column), F64, WORD_BYTES)


def _emit_elimination(emitter: Emitter) -> Value:
    """The determinant: the product of the pivots, negated for every exchange of rows."""
    builder, size = emitter.builder, emitter.extent(X, 1)
    with emitter.for_range(0, size, carried=[ir.Constant(F64, 1.0)]) as steps:
        step = steps.index
        best = _emit_largest(emitter, step)
        pivot = _load(emitter, best, step)
        _emit_exchange(emitter, step, best)
        _emit_subtraction(emitter, step, pivot)
        product = builder.fmul(steps.values[0], pivot)
        is_exchanged = emitter.compare(best, "!=", step)
        steps.carry([emitter.select(is_exchanged, builder.fneg(product), product)])
    return steps.results[0]


def _emit_largest(emitter: Emitter, step: Value) -> Value:
    """The row, from `step` on, of the largest magnitude in column `step`."""
    builder = emitter.builder
    start = emitter.intrinsic("llvm.fabs", F64, [_load(emitter, step, step)])
    with emitter.for_range(emitter.add(step, 1), emitter.extent(X, 1), carried=[start, step]) as rows:
        largest, best = rows.values
        magnitude = emitter.intrinsic("llvm.fabs", F64, [_load(emitter, rows.index, step)])
        is_larger = builder.fcmp_ordered(">", magnitude, largest)
        rows.carry([emitter.select(is_larger, magnitude, largest), emitter.select(is_larger, rows.index, best)])
    return rows.results[1]


def _emit_exchange(emitter: Emitter, first: Value, second: Value) -> None:
    """Exchange two rows (which may be one), from column `first` on."""
    with emitter.for_range(first, emitter.extent(X, 1)) as columns:
        upper, lower = (_load(emitter, row, columns.index) for row in (first, second))
        emitter.store(lower, _place(emitter, first, columns.index), WORD_BYTES)
        emitter.store(upper, _place(emitter, second, columns.index), WORD_BYTES)


def _emit_subtraction(emitter: Emitter, step: Value, pivot: Value) -> None:
    """Subtract multiples of row `step` from those below, so that its column becomes zero; nothing for a pivot of 0."""
    builder, size, after = emitter.builder, emitter.extent(X, 1), emitter.add(step, 1)
    zero = ir.Constant(F64, 0.0)
    is_zero = builder.fcmp_ordered("==", pivot, zero)
    with emitter.for_range(after, size) as rows:
        quotient = builder.fdiv(_load(emitter, rows.index, step), pivot)
        factor = emitter.select(is_zero, zero, quotient)
        with emitter.for_range(after, size) as columns:
            taken = builder.fmul(factor, _load(emitter, step, columns.index))
            rest = builder.fsub(_load(emitter, rows.index, columns.index), taken)
            emitter.store(rest, _place(emitter, rows.index, columns.index), WORD_BYTES)


def _emit_store(emitter: Emitter, matrix: Value, determinant: Value) -> None:
    element = emitter.key.operands[Y].element
    kind = storage_type(element)
    number = emit_cast(emitter, determinant, ElementType.F64, element, 1)
    address = emitter.strided(emitter.pointer(Y), kind, (matrix, emitter.stride(Y, 0)))
    emitter.store(emit_to_storage(emitter, number, element, 1), address, element.size)
