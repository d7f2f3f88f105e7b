"""Bodies of weighted sums at places that a table names."""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.generators.rows import VectorBody, emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.lir.operations.resampling import INDICES, WEIGHTS, X, Y

PLACE_AXIS, INNER_AXIS, TAP_AXIS = 2, 3, 2
PLACES_PER_UNIT, CHUNKS = range(2)


def emit_resample(emitter: Emitter, is_points: bool, count: int) -> None:
    """Place by place; along the inner axis in vectors unless its extent is 1.

    `count` taps are unrolled; where it is 0 their number is read at run time.
    """
    with emitter.for_units() as units:
        line, chunk = emitter.divmod(units.index, emitter.derived(CHUNKS))
        batch, channel = emitter.divmod(line, emitter.extent(Y, 1))
        first = emitter.mul(chunk, emitter.derived(PLACES_PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(PLACES_PER_UNIT)), emitter.extent(Y, PLACE_AXIS))
        x = operand_at(emitter, X, INNER_AXIS, InnerStride.ONE, (0, batch), (1, channel))
        with emitter.for_range(first, last) as places:
            y = operand_at(
                emitter, Y, INNER_AXIS, InnerStride.ONE, (0, batch), (1, channel), (PLACE_AXIS, places.index)
            )
            indices, weights = (
                operand_at(emitter, operand, TAP_AXIS, InnerStride.ANY, (0, batch), (1, places.index))
                for operand in (INDICES, WEIGHTS)
            )
            body = _Place(emitter, x, y, indices, weights).body(count)
            if is_points:
                body(emitter.i64(0), 1, None)
            else:
                emit_row(emitter, [y, x], emitter.extent(Y, INNER_AXIS), body)


@dataclass(frozen=True)
class _Tap:
    """The run of x that a tap reads, its weight, and whether it counts."""

    run: InnerOperand
    weight: Value
    is_inside: Value


@dataclass(frozen=True)
class _Place:
    """Operands standing at one place."""

    emitter: Emitter
    x: InnerOperand
    y: InnerOperand
    indices: InnerOperand
    weights: InnerOperand

    def body(self, count: int) -> VectorBody:
        """The sum of all taps for some elements of the run."""
        taps = [self._tap(self.emitter.i64(number)) for number in range(count)]

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            arithmetic = Arithmetic(self.emitter, self.x.element, lanes)
            total = arithmetic.constant(0)
            for tap in taps:
                total = self._added(arithmetic, total, tap, index, mask)
            if not taps:
                total = self._looped(arithmetic, total, index, mask)
            self.y.store(arithmetic.rounded(total), index, lanes, mask)

        return emit_vectors

    def _looped(self, arithmetic: Arithmetic, initial: Value, index: Value, mask: Value | None) -> Value:
        emitter = self.emitter
        with emitter.for_range(0, emitter.extent(INDICES, TAP_AXIS), carried=[initial]) as taps:
            taps.carry([self._added(arithmetic, taps.values[0], self._tap(taps.index), index, mask)])
        return taps.results[0]

    def _tap(self, number: Value) -> _Tap:
        """A tap; its run is the first one where its index is outside."""
        emitter = self.emitter
        given = self.indices.load(number, 1)
        is_inside = emitter.builder.icmp_unsigned("<", given, emitter.extent(X, PLACE_AXIS))
        row = emitter.select(is_inside, given, emitter.i64(0))
        run = self.x.moved(emitter.mul(row, emitter.stride(X, PLACE_AXIS)))
        return _Tap(run, self.weights.load(number, 1), is_inside)

    def _added(self, arithmetic: Arithmetic, total: Value, tap: _Tap, index: Value, mask: Value | None) -> Value:
        taken = tap.run.load(index, arithmetic.lanes, mask)
        weight = self.emitter.splat(tap.weight, arithmetic.lanes)
        return self.emitter.select(tap.is_inside, arithmetic.multiply_add(taken, weight, total), total)
