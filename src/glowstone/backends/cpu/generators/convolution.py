"""Bodies of convolutions in the plain layout, of any rank, grouping and element type.

One row of results (along the last axis) at a time is summed in scratch: for every input channel and tap, the part of
the row whose window lies inside the input gets a multiple of a row of the input. Nothing outside the input is read.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import HALVES
from glowstone.backends.cpu.vector_math import emit_expression
from glowstone.lir.operations import Convolution
from glowstone.types import ElementType

Y, X, W, FIRST_EXTRA = range(4)
ROWS_PER_UNIT, ROWS = range(2)
SPATIAL_AXIS = 2
"""First spatial axis."""


def carried_element(element: ElementType) -> ElementType:
    """What sums are carried in."""
    return ElementType.F32 if element in HALVES else element


def emit_convolution(emitter: Emitter, operation: Convolution) -> None:
    """Units are ranges of rows of results."""
    rank = emitter.key.operands[Y].rank
    with emitter.for_units() as units:
        first = emitter.mul(units.index, emitter.derived(ROWS_PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(ROWS_PER_UNIT)), emitter.derived(ROWS))
        with emitter.for_range(first, last) as rows:
            places = emitter.unravel(rows.index, [emitter.extent(Y, axis) for axis in range(rank - 1)])
            _Row(emitter, operation, places).emit()


@dataclass(frozen=True)
class _Row:
    """One row of results; `places` are its indices on all axes but the last."""

    emitter: Emitter
    operation: Convolution
    places: list[Value]

    @property
    def _last(self) -> int:
        return self.emitter.key.operands[Y].rank - 1

    def emit(self) -> None:
        emitter = self.emitter
        element = emitter.key.operands[Y].element
        sums = InnerOperand(emitter, carried_element(element), InnerStride.ONE, emitter.scratch, emitter.i64(1))
        length = emitter.extent(Y, -1)
        emit_row(
            emitter,
            [sums],
            length,
            lambda index, lanes, mask: sums.store(
                Arithmetic(emitter, sums.element, lanes).constant(0), index, lanes, mask
            ),
        )
        self._accumulate(sums)
        self._finish(sums, length)

    def _accumulate(self, sums: InnerOperand) -> None:
        """Add every input channel and tap."""
        emitter, groups = self.emitter, self.operation.groups
        channels = emitter.extent(W, 1)
        group = emitter.div(self.places[1], emitter.div(emitter.extent(Y, 1), groups)) if groups > 1 else emitter.i64(0)
        first_channel = emitter.mul(group, channels)
        with ExitStack() as stack:
            channel = stack.enter_context(emitter.for_range(0, channels)).index
            source = [(0, self.places[0]), (1, emitter.add(first_channel, channel))]
            weight = [(0, self.places[1]), (1, channel)]
            for axis in range(SPATIAL_AXIS, self._last):
                tap = stack.enter_context(emitter.for_range(0, emitter.extent(W, axis))).index
                place = self._source_place(axis, self.places[axis], tap)
                is_inside = emitter.builder.icmp_unsigned("<", place, emitter.extent(X, axis))
                stack.enter_context(emitter.if_true(is_inside))
                source.append((axis, place))
                weight.append((axis, tap))
            tap = stack.enter_context(emitter.for_range(0, emitter.extent(W, -1))).index
            self._add_tap(sums, source, [*weight, (self._last, tap)], tap)

    def _source_place(self, axis: int, place: Value | int, tap: Value) -> Value:
        """Index in the input, perhaps outside, that a tap sees from a position of the result."""
        emitter, number = self.emitter, axis - SPATIAL_AXIS
        shift = emitter.sub(emitter.mul(tap, self.operation.dilations[number]), emitter.integer(number))
        return emitter.add(emitter.mul(place, self.operation.strides[number]), shift)

    def _add_tap(
        self, sums: InnerOperand, source: list[tuple[int, Value]], weight: list[tuple[int, Value]], tap: Value
    ) -> None:
        """Add one tap's multiple of an input row to the sums that see it inside the input."""
        emitter, stride = self.emitter, self.operation.strides[-1]
        shift = self._source_place(self._last, 0, tap)
        outside = emitter.maximum(emitter.sub(0, shift), 0)
        low = emitter.ceil_div(outside, stride)
        reach = emitter.maximum(emitter.add(emitter.sub(emitter.extent(X, -1), shift), stride - 1), 0)
        high = emitter.minimum(emitter.div(reach, stride), emitter.extent(Y, -1))
        x = operand_at(emitter, X, self._last, self._source_stride(), *source)
        x = x.moved(emitter.mul(emitter.add(emitter.mul(low, stride), shift), emitter.stride(X, -1)))
        x = InnerOperand(emitter, x.element, x.inner, x.pointer, emitter.mul(emitter.stride(X, -1), stride))
        factor = operand_at(emitter, W, self._last, InnerStride.ONE, *weight).load_single()
        here = sums.moved(low)

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            arithmetic = Arithmetic(emitter, sums.element, lanes)
            product = arithmetic.multiply_add(
                x.load(index, lanes, mask), emitter.splat(factor, lanes), here.load(index, lanes, mask)
            )
            here.store(product, index, lanes, mask)

        none_or_more = emitter.maximum(emitter.sub(high, low), 0)  # a tap may see padding from every position
        emit_row(emitter, [here, x], none_or_more, emit_vectors)

    def _source_stride(self) -> InnerStride:
        is_dense = self.operation.strides[-1] == 1 and self.emitter.key.operands[X].inner is InnerStride.ONE
        return InnerStride.ONE if is_dense else InnerStride.ANY

    def _finish(self, sums: InnerOperand, length: Value) -> None:
        """Epilogue and store of the row."""
        emitter, epilogue = self.emitter, self.operation.epilogue
        outputs = [Y, *range(FIRST_EXTRA, len(emitter.key.operands))]
        y, *extras = (
            operand_at(emitter, operand, self._last, emitter.key.operands[operand].inner, *enumerate(self.places))
            for operand in outputs
        )

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            result = Arithmetic(emitter, y.element, lanes).rounded(sums.load(index, lanes, mask))
            if epilogue is not None:
                inputs = [result, *(extra.load(index, lanes, mask) for extra in extras)]
                result = emit_expression(emitter, epilogue, inputs, lanes)
            y.store(result, index, lanes, mask)

        emit_row(emitter, [y, sums, *extras], length, emit_vectors)
