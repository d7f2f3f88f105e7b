"""Recurrent networks: all steps of one direction as one instruction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.strides import has_unit_last_stride
from glowstone.scalar import Expression, inputs_of
from glowstone.scalar.recurrence import Cell, run_recurrence


@operation
class Recurrence(Operation):
    """Every step computes S states from the step's products, the products of a matrix with the first state, and states.

    Operands: y [steps, batch, H] (the first state after every step; 0 after a sequence's end), S final states
    [batch, H], products [steps, batch, G * H], matrix [G * H, H], lengths [batch] (i32 or i64, clamped to the steps), S
    initial states [batch, H], parameters [H]. The inputs of the expressions are those of `scalar.recurrence`.
    """

    gates: int
    states: tuple[Expression, ...]
    parameters: int = 0
    factor: Expression | None = None
    reverse: bool = False
    ulp_bound: ClassVar[float] = 1024.0

    @property
    def cell(self) -> Cell:
        return Cell(self.gates, self.states, self.factor)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        count = len(self.states)
        return (Access.OUT,) * (1 + count) + (Access.IN,) * (3 + count + self.parameters)

    def accepts(self, operand: int, view: View) -> bool:
        return has_unit_last_stride(view)

    def multiply_adds(self, views: Sequence[View]) -> int:
        """The matrix once for every step of every sequence."""
        return views[0].size * self.gates * views[0].shape[-1]

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        count = len(self.states)
        y, products, matrix, lengths = views[0], *views[1 + count : 4 + count]
        require(y.rank == products.rank == 3 and matrix.rank == 2, f"ranks {y.rank}, {products.rank}, {matrix.rank}")
        steps, batch, hidden = y.shape
        require(products.shape == (steps, batch, self.gates * hidden), f"products {products.shape} for {y.shape}")
        require(matrix.shape == (self.gates * hidden, hidden), f"matrix {matrix.shape} for {y.shape}")
        require(lengths.shape == (batch,) and lengths.element.is_integer, f"lengths {lengths.shape} for {y.shape}")
        for state in (*views[1 : 1 + count], *views[4 + count : 4 + 2 * count]):
            require(state.shape == (batch, hidden), f"state {state.shape} for {y.shape}")
        for parameter in views[4 + 2 * count :]:
            require(parameter.shape == (hidden,), f"parameter {parameter.shape} for {y.shape}")
        known = 2 * self.gates + count + self.parameters
        for expression in (*self.states, *(() if self.factor is None else (self.factor,))):
            for value in inputs_of(expression):
                require(value.index < known and value.element is y.element, f"input {value} of {known}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        count = len(self.states)
        products, matrix, lengths, *rest = arrays[1 + count :]
        found = run_recurrence(self.cell, products, matrix, lengths, rest[:count], rest[count:], self.reverse)
        for out, result in zip(arrays[: 1 + count], found, strict=True):
            out[...] = result
