"""Recurrent networks of ONNX: RNN, GRU, LSTM, in one direction or both.

The products of all steps with the weights are one matrix product; the steps are a `Recurrence`. 16-bit floats are
computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import ConstantOfShape
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import FLOATS, INDICES
from glowstone.ops.elementwise import Add
from glowstone.ops.linear import MatMul
from glowstone.ops.recurrence import Recurrence
from glowstone.ops.recurrent_cells import activation_functions, gru_cell, lstm_cell, rnn_cell
from glowstone.ops.shape import Concat, Squeeze, Transpose, unsqueeze
from glowstone.ops.shape_arithmetic import extents, joined, sliced, stretched
from glowstone.ops.widening import computed_element, converted
from glowstone.scalar.recurrence import Cell, run_recurrence
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = range(8)
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Per direction, whether it runs from the last step to the first."""
TIME_FIRST = (1, 0, 2)
"""Swaps steps and batch of x, and directions and batch of a state."""
BATCH_FIRST_RESULTS = (2, 0, 1, 3)
"""From [steps, directions, batch, H] to [batch, steps, directions, H]."""

SAMPLE_HIDDEN = 5
"""Hidden units of the samples."""

WEIGHTS = (Operand("x", FLOATS), Operand("w", FLOATS), Operand("r", FLOATS))
OPTIONAL = (
    Operand("bias", FLOATS, optional=True),
    Operand("lengths", INDICES, optional=True),
    Operand("initial_h", FLOATS, optional=True),
)


@dataclass(frozen=True, eq=False)
class RecurrentNetwork(Operator):
    """Base: x [steps, batch, I], w [D, G * H, I], r [D, G * H, H], bias [D, 2 * G * H], states [D, batch, H].

    Results are y [steps, D, batch, H] and the final states. With `batch_first`, batch comes first everywhere.
    `activations` are those of all directions, the cell's defaults where empty; `clip` bounds what those of gates get.
    """

    operands: ClassVar[tuple[Operand, ...]] = WEIGHTS + OPTIONAL
    result_names: ClassVar[tuple[str, ...]] = ("y", "y_h")
    gates: ClassVar[int] = 1
    defaults: ClassVar[tuple[str, ...]] = ("Tanh",)
    gate_activations: ClassVar[int] = 1
    """How many of the activations are of gates: the first ones."""
    direction: str = "forward"
    activations: tuple[str, ...] = ()
    alphas: tuple[float, ...] = ()
    betas: tuple[float, ...] = ()
    clip: float | None = None
    batch_first: bool = False

    def make_cell(self, element: ElementType, functions: Sequence[Any], peepholes: bool) -> Cell:
        """The cell of one direction."""
        raise NotImplementedError

    @property
    def separates_last_bias(self) -> bool:
        """Whether the recurrent bias of the last gate is a parameter of the cell."""
        return False

    @property
    def reverses(self) -> tuple[bool, ...]:
        """Per direction, whether it is reversed.

        Raises:
            ModelError: an unknown direction.
        """
        if self.direction not in DIRECTIONS:
            raise ModelError("unknown direction", expected=", ".join(DIRECTIONS), found=self.direction)
        return DIRECTIONS[self.direction]

    def cells(self, element: ElementType, peepholes: bool) -> list[Cell]:
        """The cell of every direction.

        Raises:
            ModelError: unknown activations, or a wrong number of them.
        """
        directions, count = len(self.reverses), len(self.defaults)
        names = self.activations or self.defaults * directions
        if len(names) != count * directions:
            raise ModelError("the number of activations is wrong", expected=count * directions, found=len(names))
        limits = [self.clip if number < self.gate_activations else None for number in range(count)] * directions
        functions = activation_functions(names, self.alphas, self.betas, limits)
        return [
            self.make_cell(element, functions[count * number : count * (number + 1)], peepholes)
            for number in range(directions)
        ]

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, r = operands[X], operands[R]
        directions, peepholes = len(self.reverses), len(operands) > PEEPHOLES
        states = len(self.cells(computed_element(x.element), peepholes)[0].states)
        if x.rank != 3 or r.rank != 3:
            raise ShapeError("ranks do not fit a recurrent network", expected="rank 3", found=f"{x.type}, {r.type}")
        steps, batch = x.shape[1::-1] if self.batch_first else x.shape[:2]
        hidden = r.shape[2]
        state = (batch, directions, hidden) if self.batch_first else (directions, batch, hidden)
        expected = {
            W: (directions, self.gates * hidden, x.shape[2]),
            R: (directions, self.gates * hidden, hidden),
            BIAS: (directions, 2 * self.gates * hidden),
            LENGTHS: (batch,),
            INITIAL_H: state,
            INITIAL_C: state,
            PEEPHOLES: (directions, 3 * hidden),
        }
        for number, shape in expected.items():
            value = operands[number] if number < len(operands) else None
            if value is not None and value.shape != shape:
                raise ShapeError(
                    f"operand {self.operands[number].name} does not fit", expected=list(shape), found=str(value.type)
                )
        y = (batch, steps, directions, hidden) if self.batch_first else (steps, directions, batch, hidden)
        return (x.type.with_shape(y), *[x.type.with_shape(state)] * states)

    def known(self, *operands: Value | None) -> None:
        """No shape hangs on recurrent networks."""

    def reference(self, *operands: Any) -> tuple[Array, ...]:
        given = [*operands, *[None] * (PEEPHOLES + 1 - len(operands))]
        x = given[X]
        element = computed_element(ElementType.from_dtype(x.dtype))
        wide = [
            array.astype(element.dtype) if array is not None and number != LENGTHS else array
            for number, array in enumerate(given)
        ]
        if self.batch_first:
            for number in (X, INITIAL_H, INITIAL_C):
                wide[number] = None if wide[number] is None else wide[number].transpose(TIME_FIRST)
        cells = self.cells(element, given[PEEPHOLES] is not None)
        parts = [
            self._numpy_direction(cell, number, reverse, wide)
            for number, (cell, reverse) in enumerate(zip(cells, self.reverses, strict=True))
        ]
        y, *states = (np.stack(results) for results in zip(*parts, strict=True))
        y = y.transpose(1, 0, 2, 3)
        if self.batch_first:
            y = y.transpose(BATCH_FIRST_RESULTS)
            states = [state.transpose(TIME_FIRST) for state in states]
        return tuple(result.astype(x.dtype) for result in (y, *states))

    def _numpy_direction(self, cell: Cell, number: int, reverse: bool, given: list[Any]) -> tuple[Array, ...]:
        x, w, r = given[X], given[W][number], given[R][number]
        steps, batch = x.shape[:2]
        hidden, size = r.shape[1], r.shape[0]
        bias = np.zeros(2 * size, x.dtype) if given[BIAS] is None else given[BIAS][number]
        first, second = bias[:size], bias[size:].copy()
        parameters = []
        if self.separates_last_bias:
            parameters.append(second[-hidden:].copy())
            second[-hidden:] = 0
        if given[PEEPHOLES] is not None:
            parameters += list(given[PEEPHOLES][number].reshape(3, hidden))
        products = (x.astype(np.float64) @ w.astype(np.float64).T + first + second).astype(x.dtype)
        lengths = np.full(batch, steps) if given[LENGTHS] is None else given[LENGTHS]
        zeros = np.zeros((batch, hidden), x.dtype)
        initial = [
            zeros if given[state] is None else given[state][number]
            for state in (INITIAL_H, INITIAL_C)[: len(cell.states)]
        ]
        return run_recurrence(cell, products, r, lengths, initial, parameters, reverse)

    def decompose(self, builder: Builder, *operands: Any) -> tuple[Value, ...]:
        given: list[Value | None] = [*operands, *[None] * (PEEPHOLES + 1 - len(operands))]
        x = operands[X]
        element = computed_element(x.element)
        for number, value in enumerate(given):
            if value is not None and number != LENGTHS:
                wide = converted(builder, value, element)
                swaps = self.batch_first and number in (X, INITIAL_H, INITIAL_C)
                given[number] = builder.emit(Transpose(TIME_FIRST), wide) if swaps else wide
        direction = _Direction(self, builder, given)
        cells = self.cells(element, given[PEEPHOLES] is not None)
        parts = [
            direction.build(cell, number, reverse)
            for number, (cell, reverse) in enumerate(zip(cells, self.reverses, strict=True))
        ]
        results = [
            self._joined(builder, values, axis=0 if place else 1)
            for place, values in enumerate(zip(*parts, strict=True))
        ]
        if self.batch_first:
            orders = [BATCH_FIRST_RESULTS, *[TIME_FIRST] * (len(results) - 1)]
            results = [builder.emit(Transpose(order), value) for order, value in zip(orders, results, strict=True)]
        return tuple(converted(builder, value, x.element) for value in results)

    @staticmethod
    def _joined(builder: Builder, values: Sequence[Value], axis: int) -> Value:
        """The directions one after another along a new axis."""
        parts = [unsqueeze(builder, value, (axis,)) for value in values]
        return parts[0] if len(parts) == 1 else builder.emit(Concat(axis), *parts)

    @classmethod
    def arrays(cls, directions: int, steps: int = 4, batch: int = 3, inputs: int = 2) -> list[Array]:
        """x, w, r, bias, lengths, initial states and peepholes of a sample."""
        random, hidden = np.random.default_rng(25), SAMPLE_HIDDEN
        size = cls.gates * hidden
        shapes: list[tuple[int, ...]] = [
            (steps, batch, inputs),
            (directions, size, inputs),
            (directions, size, hidden),
            (directions, 2 * size),
            *[(directions, batch, hidden)] * 2,
            (directions, 3 * hidden),
        ]
        arrays = [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
        return [*arrays[:LENGTHS], np.array([steps, 2, 3], np.int32), *arrays[LENGTHS:]]

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        one, two = cls.arrays(1), cls.arrays(2)
        return [
            Sample(cls(), tuple(one[:BIAS])),
            Sample(cls("reverse"), tuple(one[:LENGTHS])),
            Sample(cls("bidirectional", clip=0.3), (*two[:LENGTHS], None, two[INITIAL_H])),
            Sample(cls("bidirectional"), tuple(two[:INITIAL_C])),
            Sample(cls("reverse"), tuple(one[:INITIAL_C])),
            *element_samples(cls(), FLOATS - {ElementType.F32}, *one[:LENGTHS]),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, w, r, bias, *_ = cls.arrays(1)
        return [
            ErrorSample(cls(), (x, w, r, bias[:, 1:]), "operand bias does not fit"),
            ErrorSample(cls("bidirectional"), (x, w, r), "operand w does not fit"),
            ErrorSample(cls("sideways"), (x, w, r), "unknown direction"),
            ErrorSample(cls(activations=("Sine",) * len(cls.defaults)), (x, w, r), "unknown activation"),
            ErrorSample(cls(activations=("Tanh",) * 7), (x, w, r), "number of activations"),
            ErrorSample(cls(), (x[0], w, r), "ranks do not fit"),
        ]


class _Direction:
    """Builds one direction of a network; `given` are its operands in time-first order and computed element type."""

    def __init__(self, network: RecurrentNetwork, builder: Builder, given: list[Value | None]) -> None:
        self._network = network
        self._builder = builder
        self._given = given
        x, matrix = given[X], given[R]
        assert x is not None
        assert matrix is not None
        self._x = x
        self._hidden = matrix.shape[2]
        self._size = matrix.shape[1]

    def build(self, cell: Cell, number: int, reverse: bool) -> tuple[Value, ...]:
        """The results of direction `number`."""
        builder = self._builder
        weights = builder.emit(Transpose((1, 0)), self._part(W, number))
        products = builder.emit(MatMul(), self._x, weights)
        parameters = []
        if self._given[BIAS] is not None:
            offset, last = self._bias(number)
            products = builder.emit(Add(), products, offset)
            parameters += last
        elif self._network.separates_last_bias:
            parameters.append(self._zeros(self._hidden))
        if self._given[PEEPHOLES] is not None:
            peepholes = self._part(PEEPHOLES, number)
            parameters += [self._slice(peepholes, gate * self._hidden, self._hidden) for gate in range(3)]
        states = [self._state(operand, number) for operand in (INITIAL_H, INITIAL_C)[: len(cell.states)]]
        operands = (products, self._part(R, number), self._lengths(), *states, *parameters)
        return builder.emit_node(Recurrence.of(cell, reverse), *operands).results

    def _part(self, operand: int, number: int) -> Value:
        """The part of an operand that belongs to a direction."""
        value = self._given[operand]
        assert value is not None
        if value.shape[0] > 1:
            value = sliced(self._builder, value, 0, number, number + 1)
        return self._builder.emit(Squeeze((0,)), value)

    def _slice(self, value: Value, start: int, count: int) -> Value:
        return sliced(self._builder, value, value.rank - 1, start, start + count)

    def _bias(self, number: int) -> tuple[Value, list[Value]]:
        """What is added to the products of all steps, and the recurrent bias of the last gate where that is apart."""
        builder, bias = self._builder, self._part(BIAS, number)
        given, recurrent = self._slice(bias, 0, self._size), self._slice(bias, self._size, self._size)
        if not self._network.separates_last_bias:
            return builder.emit(Add(), given, recurrent), []
        whole = self._size - self._hidden
        sums = builder.emit(Add(), self._slice(given, 0, whole), self._slice(recurrent, 0, whole))
        offset = builder.emit(Concat(0), sums, self._slice(given, whole, self._hidden))
        return offset, [self._slice(recurrent, whole, self._hidden)]

    def _state(self, operand: int, number: int) -> Value:
        if self._given[operand] is not None:
            return self._part(operand, number)
        return self._zeros(extents(self._builder, self._x, 1, 2), self._hidden)

    def _zeros(self, *shape: Value | int) -> Value:
        return self._builder.emit(ConstantOfShape(0.0, self._x.element), joined(self._builder, *shape))

    def _lengths(self) -> Value:
        """The steps of every sequence; all where nothing else is said."""
        lengths = self._given[LENGTHS]
        if lengths is not None:
            return lengths
        return stretched(self._builder, extents(self._builder, self._x, 0, 1), extents(self._builder, self._x, 1, 2))


@operator
class RNN(RecurrentNetwork):
    """h' = f(W x + R h + biases). ONNX RNN-14."""

    onnx = "RNN-14"

    def make_cell(self, element: ElementType, functions: Sequence[Any], peepholes: bool) -> Cell:
        return rnn_cell(element, functions)


@operator
class GRU(RecurrentNetwork):
    """Gated recurrent units, gates z, r, h. ONNX GRU-14.

    With `linear_before_reset` the reset gate multiplies the product of the last gate, not its factor.
    """

    onnx = "GRU-14"
    gates = 3
    defaults = ("Sigmoid", "Tanh")
    gate_activations = 2
    linear_before_reset: bool = False

    @property
    def separates_last_bias(self) -> bool:
        return self.linear_before_reset

    def make_cell(self, element: ElementType, functions: Sequence[Any], peepholes: bool) -> Cell:
        return gru_cell(element, functions, self.linear_before_reset)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        one, two = cls.arrays(1), cls.arrays(2)
        return [
            *super().samples(),
            Sample(cls(linear_before_reset=True), tuple(one[:LENGTHS])),
            Sample(cls("bidirectional", linear_before_reset=True), (*two[:BIAS], None, *two[LENGTHS:INITIAL_C])),
        ]


@operator
class LSTM(RecurrentNetwork):
    """Long short-term memory, gates i, o, f, c; peepholes [D, 3 * H] of i, o, f. ONNX LSTM-14.

    With `couples_input` the forget gate is 1 - i.
    """

    onnx = "LSTM-14"
    operands = (
        *WEIGHTS,
        *OPTIONAL,
        Operand("initial_c", FLOATS, optional=True),
        Operand("peepholes", FLOATS, optional=True),
    )
    result_names = ("y", "y_h", "y_c")
    gates = 4
    defaults = ("Sigmoid", "Tanh", "Tanh")
    gate_activations = 2
    couples_input: bool = False

    def make_cell(self, element: ElementType, functions: Sequence[Any], peepholes: bool) -> Cell:
        return lstm_cell(element, functions, peepholes, self.couples_input)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        one, two = cls.arrays(1), cls.arrays(2)
        return [
            *super().samples(),
            Sample(cls(), tuple(one)),
            Sample(cls("bidirectional", clip=0.2), tuple(two)),
            Sample(cls(couples_input=True), tuple(one[:LENGTHS])),
        ]
