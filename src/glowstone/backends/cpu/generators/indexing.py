"""What kernels with indices as data have in common: lines of a box, and checked indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.math.casts import emit_cast
from glowstone.table import StatusCode
from glowstone.types import ElementType

LINES_PER_UNIT = 0


@contextmanager
def emit_lines(emitter: Emitter, extents: Sequence[Value]) -> Iterator[tuple[Value, list[Value]]]:
    """(unit, coordinates) of every position in a box; a unit has `derived(LINES_PER_UNIT)` of them."""
    total = emitter.i64(1)
    for extent in extents:
        total = emitter.mul(total, extent)
    with emitter.for_units() as units:
        first = emitter.mul(units.index, emitter.derived(LINES_PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(LINES_PER_UNIT)), total)
        with emitter.for_range(first, last) as lines:
            yield units.index, emitter.unravel(lines.index, extents) if extents else []


def checked_index(
    emitter: Emitter, indices: InnerOperand, place: Value, extent: Value, unit: Value
) -> tuple[Value, Value]:
    """(index counted from the front, whether it was outside): 0 where it was, which is reported."""
    given = emit_cast(emitter, indices.load(place, 1), indices.element, ElementType.I64, 1)
    negative = emitter.compare(given, "<", 0)
    index = emitter.select(negative, emitter.add(given, extent), given)
    is_bad = emitter.builder.icmp_unsigned(">=", index, extent)
    emitter.report(is_bad, unit, StatusCode.INDEX_OUT_OF_RANGE, given)
    return emitter.select(is_bad, emitter.i64(0), index), is_bad


def clamped_index(emitter: Emitter, indices: InnerOperand, place: Value, extent: Value) -> Value:
    """An index that is in range; if it were not, the last element."""
    given = emit_cast(emitter, indices.load(place, 1), indices.element, ElementType.I64, 1)
    return emitter.intrinsic("llvm.umin", given.type, [given, emitter.sub(extent, 1)])
