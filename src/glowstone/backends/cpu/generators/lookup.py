"""Bodies of searches among sorted keys."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.indexing import emit_lines
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.types import ElementType

Y, X, KEYS, VALUES = range(4)
HALVINGS = 1
"""Which derived integer; the other is that of `emit_lines`."""


def emit_lookup(emitter: Emitter) -> None:
    """`y[n]` is the value of the key that `x[n]` equals."""
    y, x, keys, values = (operand_at(emitter, operand, 0, InnerStride.ONE) for operand in range(4))
    with emit_lines(emitter, [emitter.extent(Y, 0)]) as (_, (place,)):
        number = _found(emitter, keys, x.load(place, 1))
        y.store(values.load(number, 1), place, 1)


def _found(emitter: Emitter, keys: InnerOperand, x: Value) -> Value:
    """The number of the key that equals x; that of keys where none does."""
    builder, count = emitter.builder, emitter.extent(KEYS, 0)
    with emitter.for_range(0, emitter.derived(HALVINGS), carried=[emitter.i64(0), count]) as steps:
        base, length = steps.values
        half = builder.lshr(length, emitter.i64(1))
        middle = emitter.add(base, emitter.maximum(emitter.sub(half, 1), 0))
        goes_on = builder.and_(emitter.compare(half, ">", 0), _is_less(emitter, keys, middle, x))
        moved = emitter.select(goes_on, emitter.add(base, half), base)
        steps.carry([moved, emitter.sub(length, half)])
    base = steps.results[0]
    place = emitter.add(base, builder.zext(_is_less(emitter, keys, base, x), base.type))
    candidate = keys.load(emitter.minimum(place, emitter.sub(count, 1)), 1)
    inside = emitter.compare(place, "<", count)
    return emitter.select(builder.and_(inside, _is_equal(emitter, keys.element, candidate, x)), place, count)


def _is_less(emitter: Emitter, keys: InnerOperand, place: Value, x: Value) -> Value:
    """Whether a key is less than x; NaN is the largest."""
    builder, key = emitter.builder, keys.load(place, 1)
    if not keys.element.is_float:
        return builder.icmp_signed("<", key, x)
    only_x = builder.and_(builder.fcmp_unordered("uno", x, x), builder.fcmp_ordered("ord", key, key))
    return builder.or_(builder.fcmp_ordered("<", key, x), only_x)


def _is_equal(emitter: Emitter, element: ElementType, key: Value, x: Value) -> Value:
    builder = emitter.builder
    if not element.is_float:
        return builder.icmp_signed("==", key, x)
    both = builder.and_(builder.fcmp_unordered("uno", key, key), builder.fcmp_unordered("uno", x, x))
    return builder.or_(builder.fcmp_ordered("==", key, x), both)
