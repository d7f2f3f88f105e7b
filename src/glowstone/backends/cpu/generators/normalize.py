"""Bodies of softmax and layer normalization."""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import emit_columns, emit_rows, operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.generators.run_reduction import Monoid, emit_run_reduction
from glowstone.backends.cpu.ir_types import Value, lanes_of
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import HALVES, float_builder
from glowstone.backends.cpu.math.exponential import emit_exp_not_positive
from glowstone.types import ElementType

Y, X, SCALE, BIAS = range(4)
ONE = InnerStride.ONE


def _sum(emitter: Emitter, element: ElementType) -> Monoid:
    return Monoid(lambda lanes: Arithmetic(emitter, element, lanes).constant(0), Arithmetic(emitter, element, 1).add)


def _larger_number(emitter: Emitter, x: Value, y: Value) -> Value:
    """The larger; y where x is NaN, which a sum of exponentials then shows."""
    return emitter.select(emitter.builder.fcmp_ordered(">", x, y), x, y)


def _maximum(emitter: Emitter, element: ElementType) -> Monoid:
    return Monoid(
        lambda lanes: Arithmetic(emitter, element, lanes).lowest(), lambda x, y: _larger_number(emitter, y, x)
    )


def _like(emitter: Emitter, value: Value, other: Value) -> Value:
    """A scalar in as many lanes as `other` has; a vector as it is."""
    return value if value.type == other.type else emitter.splat(value, lanes_of(other.type))


class _Exponentials:
    """exp(x - maximum), and those divided by their sum.

    Wider types keep the exponentials in y between the two passes; 16-bit ones would lose precision, so they are
    computed again.
    """

    def __init__(self, emitter: Emitter, element: ElementType) -> None:
        self._emitter = emitter
        self._element = element
        self._keeps = element not in HALVES

    def first(self, y: InnerOperand, x: InnerOperand, place: tuple[Value, int, Value | None], maximum: Value) -> Value:
        power = self._exp(x, place, maximum)
        if self._keeps:
            y.store(power, *place)
        return power

    def second(
        self, y: InnerOperand, x: InnerOperand, place: tuple[Value, int, Value | None], maximum: Value, scale: Value
    ) -> None:
        value = y.load(*place) if self._keeps else self._exp(x, place, maximum)
        y.store(self._emitter.builder.fmul(value, _like(self._emitter, scale, value)), *place)

    def _exp(self, x: InnerOperand, place: tuple[Value, int, Value | None], maximum: Value) -> Value:
        lanes = place[1]
        value = x.load(*place)
        difference = self._emitter.builder.fsub(value, _like(self._emitter, maximum, value))
        return emit_exp_not_positive(float_builder(self._emitter, self._element, lanes), difference)


def emit_exponentials(emitter: Emitter, y: InnerOperand, x: InnerOperand, length: Value) -> tuple[Value, Value]:
    """exp(x - maximum) along a run, in y where the type keeps them; gives the maximum, and the sum of all."""
    exponentials = _Exponentials(emitter, x.element)
    maximum = emit_run_reduction(emitter, [x], length, x.load, _maximum(emitter, x.element))
    total = emit_run_reduction(
        emitter,
        [y, x],
        length,
        lambda index, lanes, mask: exponentials.first(y, x, (index, lanes, mask), maximum),
        _sum(emitter, x.element),
    )
    return maximum, total


def emit_softmax_rows(emitter: Emitter) -> None:
    """Along rows of contiguous elements."""
    element = emitter.key.operands[X].element
    exponentials = _Exponentials(emitter, element)
    with emit_rows(emitter) as row:
        y, x = (operand_at(emitter, operand, 1, ONE, (0, row)) for operand in (Y, X))
        length = emitter.extent(X, 1)
        maximum, total = emit_exponentials(emitter, y, x, length)
        scale = emitter.builder.fdiv(Arithmetic(emitter, element, 1).constant(1), total)
        emit_row(
            emitter,
            [y, x],
            length,
            lambda index, lanes, mask: exponentials.second(y, x, (index, lanes, mask), maximum, scale),
        )


def emit_softmax_columns(emitter: Emitter) -> None:
    """Down columns, a vector of them at a time."""
    element = emitter.key.operands[X].element
    exponentials = _Exponentials(emitter, element)
    length = emitter.extent(X, 1)
    with emit_columns(emitter) as (outer, column, columns):
        y, x = (operand_at(emitter, operand, 2, ONE, (0, outer), (2, column)) for operand in (Y, X))

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            place = (index, lanes, mask)
            arithmetic = Arithmetic(emitter, element, lanes)

            def at(step: Value) -> tuple[InnerOperand, InnerOperand]:
                return y.moved(emitter.mul(step, emitter.stride(Y, 1))), x.moved(
                    emitter.mul(step, emitter.stride(X, 1))
                )

            with emitter.for_range(0, length, carried=[arithmetic.lowest()]) as loop:
                loop.carry([_larger_number(emitter, at(loop.index)[1].load(*place), loop.values[0])])
            maximum = loop.results[0]
            with emitter.for_range(0, length, carried=[arithmetic.constant(0)]) as loop:
                power = exponentials.first(*at(loop.index), place, maximum)
                loop.carry([arithmetic.add(loop.values[0], power)])
            scale = emitter.builder.fdiv(arithmetic.constant(1), loop.results[0])
            with emitter.for_range(0, length) as last:
                exponentials.second(*at(last.index), place, maximum, scale)

        emit_row(emitter, [y, x], columns, emit_vectors)


def emit_layer_norm(emitter: Emitter, epsilon: float) -> None:
    """Two passes for mean and variance of the centred elements, a third to normalize."""
    element = emitter.key.operands[X].element
    builder, single = emitter.builder, Arithmetic(emitter, element, 1)
    length = emitter.extent(X, 1)
    count = builder.sitofp(length, single.constant(0).type)
    with emit_rows(emitter) as row:
        y, x, scale, bias = (operand_at(emitter, operand, 1, ONE, (0, row)) for operand in (Y, X, SCALE, BIAS))
        total = emit_run_reduction(emitter, [x], length, x.load, _sum(emitter, element))
        mean = builder.fdiv(total, count)

        def centred(index: Value, lanes: int, mask: Value | None) -> Value:
            return builder.fsub(x.load(index, lanes, mask), emitter.splat(mean, lanes))

        def square(index: Value, lanes: int, mask: Value | None) -> Value:
            difference = centred(index, lanes, mask)
            return builder.fmul(difference, difference)

        squares = emit_run_reduction(emitter, [x], length, square, _sum(emitter, element))
        variance = builder.fdiv(squares, count)
        root = float_builder(emitter, element, 1).unary("sqrt", builder.fadd(variance, single.constant(epsilon)))
        factor = builder.fdiv(single.constant(1), root)

        def normalize(index: Value, lanes: int, mask: Value | None) -> None:
            normal = builder.fmul(centred(index, lanes, mask), emitter.splat(factor, lanes))
            weight, shift = scale.load(index, lanes, mask), bias.load(index, lanes, mask)
            y.store(emitter.multiply_add(normal, weight, shift), index, lanes, mask)

        emit_row(emitter, [y, x, scale, bias], length, normalize)
