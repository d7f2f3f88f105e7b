"""The meaning of a recurrence in NumPy: states that every step computes anew from its input and from themselves.

The inputs of a cell's expressions, per hidden unit, are numbered: the step's products, one per gate; the products of
the gates' matrices with the first state; the states; the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.scalar.evaluate import evaluate
from glowstone.scalar.expression import Expression

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Cell:
    """One step. `states` are the new states; the last gate's matrix takes `factor` in place of the first state."""

    gates: int
    states: tuple[Expression, ...]
    factor: Expression | None = None


def run_recurrence(
    cell: Cell,
    products: Array,
    matrix: Array,
    lengths: Array,
    initial: Sequence[Array],
    parameters: Sequence[Array],
    reverse: bool,
) -> tuple[Array, ...]:
    """(the first state after every step, the states after the last step).

    Args:
        cell: what a step does.
        products: [steps, batch, gates * hidden].
        matrix: [gates * hidden, hidden].
        lengths: steps of every sequence; the results after them are 0. Reversed sequences begin at their end.
        initial: every state, [batch, hidden].
        parameters: vectors [hidden].
        reverse: from the last step to the first.
    """
    steps, batch, _ = products.shape
    results = np.zeros((steps, batch, matrix.shape[1]), products.dtype)
    states = [np.array(state) for state in initial]
    for sequence in range(batch):
        length = min(max(int(lengths[sequence]), 0), steps)
        current = [state[sequence] for state in states]
        for step in range(length - 1, -1, -1) if reverse else range(length):
            current = _step(cell, products[step, sequence], matrix, current, parameters)
            results[step, sequence] = current[0]
        for state, value in zip(states, current, strict=True):
            state[sequence] = value
    return (results, *states)


def _step(
    cell: Cell, products: Array, matrix: Array, states: Sequence[Array], parameters: Sequence[Array]
) -> list[Array]:
    hidden = matrix.shape[1]
    given = list(products.reshape(cell.gates, hidden))
    recurrent = list(_product(matrix, states[0]).reshape(cell.gates, hidden))
    if cell.factor is not None:
        factor = evaluate(cell.factor, [*given, *recurrent, *states, *parameters])
        recurrent[-1] = _product(matrix[-hidden:], factor)
    inputs = [*given, *recurrent, *states, *parameters]
    return [np.broadcast_to(evaluate(state, inputs), (hidden,)) for state in cell.states]


def _product(matrix: Array, vector: Array) -> Array:
    return np.asarray(matrix.astype(np.float64) @ vector.astype(np.float64)).astype(matrix.dtype)
