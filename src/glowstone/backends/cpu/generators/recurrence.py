"""Body of a recurrence: for one sequence, step after step, with the states in scratch.

A step multiplies the matrix by the first state, row by row, and then computes all states together, a vector of hidden
units at a time. Where the last gate takes another factor, that is computed and multiplied in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.generators.run_reduction import Monoid, emit_run_reduction
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import emit_cast, storage_type
from glowstone.backends.cpu.vector_math import emit_expressions
from glowstone.lir.operations import Recurrence
from glowstone.scalar import Expression, inputs_of
from glowstone.types import ElementType

Y = 0
FIRST_FINAL = 1
STEPS_AXIS, BATCH_AXIS, HIDDEN_AXIS = range(3)
ONE = InnerStride.ONE


class RecurrenceBody:
    """Emits one kernel."""

    def __init__(self, emitter: Emitter, operation: Recurrence) -> None:
        self._emitter = emitter
        self._operation = operation
        self._count = len(operation.states)
        self._element = emitter.key.operands[Y].element
        self._hidden = emitter.extent(Y, HIDDEN_AXIS)
        self._products = FIRST_FINAL + self._count
        self._matrix = self._products + 1
        self._lengths = self._products + 2
        self._initial = self._products + 3
        self._states = [self._scratch(number) for number in range(self._count)]
        self._recurrent = [self._scratch(self._count + gate) for gate in range(operation.gates)]
        self._factor = self._scratch(self._count + operation.gates)
        first = self._initial + self._count
        self._parameters = [operand_at(emitter, first + number, 0, ONE) for number in range(operation.parameters)]

    def _scratch(self, row: int) -> InnerOperand:
        """A row of `hidden` numbers in scratch."""
        emitter = self._emitter
        pointer = emitter.offset(emitter.scratch, emitter.mul(self._hidden, row), storage_type(self._element))
        return InnerOperand(emitter, self._element, ONE, pointer, emitter.i64(1))

    def emit(self) -> None:
        """All sequences of this call's units."""
        emitter = self._emitter
        steps = emitter.extent(Y, STEPS_AXIS)
        with emitter.for_units() as units:
            sequence = units.index
            for number, state in enumerate(self._states):
                self._copy(state, operand_at(emitter, self._initial + number, 1, ONE, (0, sequence)))
            length = self._length(sequence, steps)
            with emitter.for_range(0, length) as loop:
                backwards = emitter.sub(emitter.sub(length, 1), loop.index)
                self._emit_step(backwards if self._operation.reverse else loop.index, sequence)
            with emitter.for_range(length, steps) as rest:
                self._clear(self._row(rest.index, sequence))
            for number, state in enumerate(self._states):
                self._copy(operand_at(emitter, FIRST_FINAL + number, 1, ONE, (0, sequence)), state)

    def _length(self, sequence: Value, steps: Value) -> Value:
        """Steps of a sequence, whatever the data says within 0 and `steps`."""
        emitter = self._emitter
        given = operand_at(emitter, self._lengths, 0, ONE)
        length = emit_cast(emitter, given.load(sequence, 1), given.element, ElementType.I64, 1)
        return emitter.minimum(emitter.maximum(length, 0), steps)

    def _row(self, step: Value, sequence: Value) -> InnerOperand:
        return operand_at(self._emitter, Y, HIDDEN_AXIS, ONE, (STEPS_AXIS, step), (BATCH_AXIS, sequence))

    def _copy(self, target: InnerOperand, source: InnerOperand) -> None:
        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            target.store(source.load(index, lanes, mask), index, lanes, mask)

        emit_row(self._emitter, [target, source], self._hidden, emit_vectors)

    def _clear(self, target: InnerOperand) -> None:
        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            target.store(Arithmetic(self._emitter, self._element, lanes).constant(0), index, lanes, mask)

        emit_row(self._emitter, [target], self._hidden, emit_vectors)

    def _emit_step(self, step: Value, sequence: Value) -> None:
        emitter, operation = self._emitter, self._operation
        products = operand_at(emitter, self._products, HIDDEN_AXIS, ONE, (STEPS_AXIS, step), (BATCH_AXIS, sequence))
        given = [products.moved(emitter.mul(self._hidden, gate)) for gate in range(operation.gates)]
        inputs = [*given, *self._recurrent, *self._states, *self._parameters]
        if operation.factor is None:
            self._multiply(0, operation.gates, self._states[0])
        else:
            last = operation.gates - 1
            self._multiply(0, last, self._states[0])
            self._compute([operation.factor], inputs, [[self._factor]])
            self._multiply(last, 1, self._factor)
        targets = [[state] for state in self._states]
        targets[0].append(self._row(step, sequence))
        self._compute(operation.states, inputs, targets)

    def _multiply(self, first: int, gates: int, vector: InnerOperand) -> None:
        """The matrices of some gates times a vector, into the rows of their products."""
        emitter = self._emitter
        single = Arithmetic(emitter, self._element, 1)
        total = Monoid(lambda lanes: Arithmetic(emitter, self._element, lanes).constant(0), single.add)
        start = emitter.mul(self._hidden, first)
        with emitter.for_range(0, emitter.mul(self._hidden, gates)) as rows:
            row = operand_at(emitter, self._matrix, 1, ONE, (0, emitter.add(start, rows.index)))

            def term(index: Value, lanes: int, mask: Value | None) -> Value:
                return single.multiply(row.load(index, lanes, mask), vector.load(index, lanes, mask))

            product = emit_run_reduction(emitter, [row, vector], self._hidden, term, total)
            self._recurrent[first].store(product, rows.index, 1)

    def _compute(
        self, expressions: Sequence[Expression], inputs: Sequence[InnerOperand], targets: Sequence[list[InnerOperand]]
    ) -> None:
        """Every expression for all hidden units, each stored in its targets."""
        used = {value.index for expression in expressions for value in inputs_of(expression)}

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            loaded = {number: inputs[number].load(index, lanes, mask) for number in sorted(used)}
            results = emit_expressions(self._emitter, expressions, loaded, lanes)
            for result, places in zip(results, targets, strict=True):
                for place in places:
                    place.store(result, index, lanes, mask)

        touched = [inputs[number] for number in sorted(used)] + [place for places in targets for place in places]
        emit_row(self._emitter, touched, self._hidden, emit_vectors)
