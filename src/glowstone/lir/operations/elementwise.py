"""Data-parallel computation: one scalar expression per output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.scalar import Expression, evaluate, inputs_of


@operation
class Elementwise(Operation):
    """Output k is `expressions[k]` of the inputs at the same position.

    Operands: outputs, then `arity` inputs, all viewed at one shape (inputs broadcast with stride 0).
    """

    expressions: tuple[Expression, ...]
    arity: int
    data_parallel: ClassVar[bool] = True
    ulp_bound: ClassVar[float] = 16.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT,) * len(self.expressions) + (Access.IN,) * self.arity

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        count = len(self.expressions)
        return tuple((out, count + index) for out in range(count) for index in range(self.arity))

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        count = len(self.expressions)
        outputs, inputs = views[:count], views[count:]
        for view in views:
            require(view.shape == views[0].shape, f"operand of shape {view.shape} among {views[0].shape}")
        for view, expression in zip(outputs, self.expressions, strict=True):
            require(view.element is expression.element, f"{expression.element} stored in {view.element}")
            for value in inputs_of(expression):
                require(value.index < self.arity, f"input {value.index} of {self.arity}")
                require(inputs[value.index].element is value.element, f"input {value.index} is not {value.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        count = len(self.expressions)
        results = [np.array(evaluate(expression, arrays[count:])) for expression in self.expressions]
        for out, result in zip(arrays[:count], results, strict=True):
            out[...] = result
