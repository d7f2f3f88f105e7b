"""Bodies of gathers: rows picked by index."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import emit_cast
from glowstone.table import StatusCode
from glowstone.types import ElementType

Y, X, INDICES = range(3)
ROWS_PER_UNIT = 0


def emit_gather(emitter: Emitter) -> None:
    """`y[o, j] = x[o, indices[j]]`, (o, j) by (o, j); the first bad index of a unit is reported."""
    picks = emitter.extent(Y, 1)
    with emitter.for_units() as units:
        first = emitter.mul(units.index, emitter.derived(ROWS_PER_UNIT))
        rows = emitter.mul(emitter.extent(Y, 0), picks)
        last = emitter.minimum(emitter.add(first, emitter.derived(ROWS_PER_UNIT)), rows)
        with emitter.for_range(first, last) as loop:
            outer, pick = emitter.divmod(loop.index, picks)
            index = _emit_index(emitter, pick, units.index)
            y = operand_at(emitter, Y, 2, InnerStride.ONE, (0, outer), (1, pick))
            x = operand_at(emitter, X, 2, InnerStride.ONE, (0, outer), (1, index))
            _copy_row(emitter, y, x)


def _emit_index(emitter: Emitter, pick: Value, unit: Value) -> Value:
    """The position along axis 1 of x, 0 where the index is out of range."""
    builder = emitter.builder
    indices = operand_at(emitter, INDICES, 0, InnerStride.ONE)
    given = emit_cast(emitter, indices.load(pick, 1), indices.element, ElementType.I64, 1)
    extent = emitter.extent(X, 1)
    negative = emitter.compare(given, "<", 0)
    index = emitter.select(negative, emitter.add(given, extent), given)
    is_bad = builder.icmp_unsigned(">=", index, extent)
    emitter.report(is_bad, unit, StatusCode.INDEX_OUT_OF_RANGE, given)
    return emitter.select(is_bad, emitter.i64(0), index)


def _copy_row(emitter: Emitter, y: InnerOperand, x: InnerOperand) -> None:
    def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
        y.store(x.load(index, lanes, mask), index, lanes, mask)

    has_rows = emitter.compare(emitter.extent(X, 1), ">", 0)
    length = emitter.select(has_rows, emitter.extent(Y, 2), emitter.i64(0))
    emit_row(emitter, [y, x], length, emit_vectors)
