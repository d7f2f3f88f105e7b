"""Bodies of the recurrence of linear attention: the state lies in scratch, and rows of it are worked on in vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.vector_math import emit_expression
from glowstone.lir.operations import LinearRecurrence
from glowstone.lir.operations.linear_recurrence import FIRST_EXTRA, LAST, STATE, K, Q, V, Y
from glowstone.scalar import Input, apply
from glowstone.types import ElementType

F32 = ElementType.F32
LAST_AXIS = 3
Combine = Callable[[list[Value], int], Value]
"""The value to store from those loaded, of so many lanes."""


@dataclass(frozen=True)
class LinearRecurrenceBody:
    """Emits one kernel. Units are (batch, group of heads)."""

    emitter: Emitter
    operation: LinearRecurrence

    def emit(self) -> None:
        emitter = self.emitter
        with emitter.for_units() as units:
            batch, group = emitter.divmod(units.index, emitter.extent(K, 2))
            with emitter.for_range(0, emitter.extent(K, 3)) as rows:
                source = self._row(STATE, batch, group, rows.index)
                self._combine(self._state(rows.index), [source], lambda loaded, _: loaded[0])
            with emitter.for_range(0, emitter.extent(K, 1)) as steps:
                self._emit_step(batch, steps.index, group)
            with emitter.for_range(0, emitter.extent(K, 3)) as rows:
                target = self._row(LAST, batch, group, rows.index)
                self._combine(target, [self._state(rows.index)], lambda loaded, _: loaded[0])

    def _emit_step(self, batch: Value, step: Value, group: Value) -> None:
        emitter = self.emitter
        if self.operation.decays:
            self._emit_decay(batch, step, group)
        self._combine(self._line, [self._row(V, batch, step, group)], lambda loaded, _: loaded[0])
        if self.operation.corrects:
            self._emit_correction(batch, step, group)
        with emitter.for_range(0, emitter.extent(K, 3)) as rows:
            key = self._number(K, batch, step, group, rows.index)
            self._add_multiple(self._state(rows.index), self._line, key)
        shared = emitter.div(emitter.extent(Y, 2), emitter.extent(K, 2))
        with emitter.for_range(0, shared) as heads:
            self._emit_query(batch, step, emitter.add(emitter.mul(group, shared), heads.index))

    def _emit_decay(self, batch: Value, step: Value, group: Value) -> None:
        """Every row of the state times e to the power of its decay."""
        emitter = self.emitter
        with emitter.for_range(0, emitter.extent(K, 3)) as rows:
            decay = self._number(FIRST_EXTRA, batch, step, group, rows.index)
            factor = emit_expression(emitter, apply("exp", Input(F32, 0)), [decay], 1)
            self._scale(self._state(rows.index), factor)

    def _emit_correction(self, batch: Value, step: Value, group: Value) -> None:
        """The line, which holds the value, less what the state gives for the key, times the rate."""
        emitter = self.emitter
        with emitter.for_range(0, emitter.extent(K, 3)) as rows:
            key = self._number(K, batch, step, group, rows.index)
            self._add_multiple(self._line, self._state(rows.index), emitter.builder.fneg(key))
        extra = FIRST_EXTRA + self.operation.decays
        rate = self._number(extra, batch, step, group, emitter.i64(0))
        self._scale(self._line, rate)

    def _emit_query(self, batch: Value, step: Value, head: Value) -> None:
        """What the state gives for one query, summed in the line and stored once."""
        emitter = self.emitter
        line = self._line
        self._combine(line, [], lambda _, lanes: emitter.zeros(lanes))
        with emitter.for_range(0, emitter.extent(K, 3)) as rows:
            query = self._number(Q, batch, step, head, rows.index)
            self._add_multiple(line, self._state(rows.index), query)
        self._combine(self._row(Y, batch, step, head), [line], lambda loaded, _: loaded[0])

    def _state(self, row: Value) -> InnerOperand:
        """A row of the state in scratch."""
        return self._scratch(self.emitter.mul(row, self.emitter.extent(Y, LAST_AXIS)))

    @property
    def _line(self) -> InnerOperand:
        """The row in scratch behind the state."""
        emitter = self.emitter
        return self._scratch(emitter.mul(emitter.extent(K, 3), emitter.extent(Y, LAST_AXIS)))

    def _scratch(self, offset: Value) -> InnerOperand:
        emitter = self.emitter
        return InnerOperand(emitter, F32, InnerStride.ONE, emitter.scratch, emitter.i64(1)).moved(offset)

    def _row(self, operand: int, *places: Value) -> InnerOperand:
        """An operand along its last axis."""
        return operand_at(self.emitter, operand, LAST_AXIS, InnerStride.ONE, *enumerate(places))

    def _number(self, operand: int, *places: Value) -> Value:
        return self._row(operand, *places).load_single()

    def _scale(self, row: InnerOperand, factor: Value) -> None:
        """`row *= factor`."""
        emitter = self.emitter
        self._combine(row, [row], lambda loaded, lanes: emitter.builder.fmul(loaded[0], emitter.splat(factor, lanes)))

    def _add_multiple(self, target: InnerOperand, source: InnerOperand, factor: Value) -> None:
        """`target += factor * source`."""
        emitter = self.emitter
        self._combine(
            target,
            [source, target],
            lambda loaded, lanes: emitter.multiply_add(loaded[0], emitter.splat(factor, lanes), loaded[1]),
        )

    def _combine(self, target: InnerOperand, sources: list[InnerOperand], combine: Combine) -> None:
        """Store what `combine` makes of the sources, along a row of values."""

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            loaded = [source.load(index, lanes, mask) for source in sources]
            target.store(combine(loaded, lanes), index, lanes, mask)

        emit_row(self.emitter, [target, *sources], self.emitter.extent(Y, LAST_AXIS), emit_vectors)
