"""One direction of a recurrent network, all steps, for any cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import INDICES
from glowstone.scalar import Expression, Input, apply, inputs_of
from glowstone.scalar.recurrence import Cell, run_recurrence
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
COMPUTED = frozenset({ElementType.F32, ElementType.F64})
F32 = ElementType.F32


@operator
class Recurrence(Operator):
    """States that every step computes anew: (the first state after every step, all states after the last one).

    products [steps, batch, gates * H] are the step's inputs times weights, matrix [gates * H, H] multiplies the first
    state; then states [batch, H] and parameters [H]. The expressions' inputs are those of `scalar.recurrence`. Results
    after a sequence's length are 0.
    """

    operands = (
        Operand("products", COMPUTED),
        Operand("matrix", COMPUTED),
        Operand("lengths", INDICES),
        Operand("values", COMPUTED, variadic=True),
    )
    gates: int = 1
    states: tuple[Expression, ...] = (Input(F32, 0),)
    factor: Expression | None = None
    reverse: bool = False

    @staticmethod
    def of(cell: Cell, reverse: bool) -> Recurrence:
        """The operator of a cell."""
        return Recurrence(cell.gates, cell.states, cell.factor, reverse)

    @property
    def cell(self) -> Cell:
        return Cell(self.gates, self.states, self.factor)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        products, matrix, lengths, *values = operands
        hidden = matrix.shape[-1] if matrix.rank == 2 else -1
        rows = self.gates * hidden
        if products.rank != 3 or matrix.shape != (rows, hidden) or products.shape[2] != rows:
            raise ShapeError(
                "products and matrix do not fit the cell",
                expected=f"[steps, batch, {self.gates} H] and [{self.gates} H, H]",
                found=f"{products.type}, {matrix.type}",
            )
        steps, batch, _ = products.shape
        states, parameters = values[: len(self.states)], values[len(self.states) :]
        fits = all(state.shape == (batch, hidden) for state in states)
        fits = fits and all(parameter.shape == (hidden,) for parameter in parameters)
        if lengths.shape != (batch,) or len(states) < len(self.states) or not fits:
            raise ShapeError(
                "lengths, states or parameters do not fit the cell",
                expected=f"[{batch}], {len(self.states)} states [{batch}, {hidden}], parameters [{hidden}]",
                found=", ".join(str(value.type) for value in (lengths, *values)),
            )
        given = {value.element for value in (products, matrix, *values)}
        parts = (*self.states, *(() if self.factor is None else (self.factor,)))
        wanted = {part.element for expression in parts for part in inputs_of(expression)} or {products.element}
        if given != wanted or any(state.element is not products.element for state in self.states):
            raise ModelError(
                "operands are not of the cell's element type",
                expected=", ".join(sorted(map(str, wanted))),
                found=", ".join(str(value.type) for value in (products, matrix, *values)),
            )
        state = products.type.with_shape((batch, hidden))
        return (products.type.with_shape((steps, batch, hidden)), *[state] * len(self.states))

    def known(self, *operands: Value | None) -> None:
        """No shape hangs on recurrences."""

    def reference(self, products: Array, matrix: Array, lengths: Array, *values: Array) -> tuple[Array, ...]:
        count = len(self.states)
        return run_recurrence(self.cell, products, matrix, lengths, values[:count], values[count:], self.reverse)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(24)
        shapes: list[tuple[int, ...]] = [(4, 3, 5), (5, 5), (3, 5)]
        products, matrix, h = (random.uniform(-1, 1, shape) for shape in shapes)
        result = []
        for element, reverse in ((F32, False), (F32, True), (ElementType.F64, False)):
            state = apply("tanh", apply("add", Input(element, 0), Input(element, 1)))
            x, m, first = (array.astype(element.dtype) for array in (products, matrix, h))
            result.append(Sample(cls(1, (state,), None, reverse), (x, m, np.array([4, 2, 0]), first)))
        return result

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        products, matrix = np.ones((2, 3, 4), np.float32), np.ones((4, 4), np.float32)
        lengths = np.array([2, 2, 2])
        return [
            ErrorSample(cls(), (products, matrix[:3], lengths, products[0]), "do not fit the cell"),
            ErrorSample(cls(), (products, matrix, lengths), "lengths, states or parameters"),
        ]
