"""Bodies of weighted sums at places that a table names."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.lir.operations.resampling import INDICES, WEIGHTS, X, Y

PLACE_AXIS, INNER_AXIS, TAP_AXIS = 2, 3, 2
PLACES_PER_UNIT, CHUNKS = range(2)


def emit_resample(emitter: Emitter, is_points: bool) -> None:
    """Place by place; along the inner axis in vectors unless its extent is 1."""
    with emitter.for_units() as units:
        line, chunk = emitter.divmod(units.index, emitter.derived(CHUNKS))
        batch, channel = emitter.divmod(line, emitter.extent(Y, 1))
        first = emitter.mul(chunk, emitter.derived(PLACES_PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(PLACES_PER_UNIT)), emitter.extent(Y, PLACE_AXIS))
        x = operand_at(emitter, X, INNER_AXIS, InnerStride.ONE, (0, batch), (1, channel))
        with emitter.for_range(first, last) as places:
            place = places.index
            y = operand_at(emitter, Y, INNER_AXIS, InnerStride.ONE, (0, batch), (1, channel), (PLACE_AXIS, place))
            indices, weights = (
                operand_at(emitter, operand, TAP_AXIS, InnerStride.ANY, (0, batch), (1, place))
                for operand in (INDICES, WEIGHTS)
            )

            def emit_vectors(
                index: Value,
                lanes: int,
                mask: Value | None,
                y: InnerOperand = y,
                indices: InnerOperand = indices,
                weights: InnerOperand = weights,
            ) -> None:
                y.store(_emit_sum(emitter, x, indices, weights, index, lanes, mask), index, lanes, mask)

            if is_points:
                emit_vectors(emitter.i64(0), 1, None)
            else:
                emit_row(emitter, [y, x], emitter.extent(Y, INNER_AXIS), emit_vectors)


def _emit_sum(
    emitter: Emitter,
    x: InnerOperand,
    indices: InnerOperand,
    weights: InnerOperand,
    index: Value,
    lanes: int,
    mask: Value | None,
) -> Value:
    arithmetic = Arithmetic(emitter, x.element, lanes)
    zero = arithmetic.constant(0)
    with emitter.for_range(0, emitter.extent(INDICES, TAP_AXIS), carried=[zero]) as taps:
        given = indices.load(taps.index, 1)
        is_inside = emitter.builder.icmp_unsigned("<", given, emitter.extent(X, PLACE_AXIS))
        row = emitter.select(is_inside, given, emitter.i64(0))
        taken = x.moved(emitter.mul(row, emitter.stride(X, PLACE_AXIS))).load(index, lanes, mask)
        weight = emitter.splat(weights.load(taps.index, 1), lanes)
        total = arithmetic.multiply_add(taken, weight, taps.values[0])
        taps.carry([emitter.select(is_inside, total, taps.values[0])])
    return arithmetic.rounded(taps.results[0])
