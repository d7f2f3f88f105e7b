"""Recurrences: machine code against NumPy, with two states, parameters, a factor, and sequences of several lengths."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.lir import Recurrence
from glowstone.scalar import Input, apply
from glowstone.types import ElementType

F32, F64 = ElementType.F32, ElementType.F64
LENGTHS = np.array([4, 0, 7, -3, 99], np.int32)


def two_states(element):
    """c' = tanh(x0 + r0) + p * c; h' = (x1 + r1) * c'."""
    x0, x1, r0, r1, _, c, p = (Input(element, number) for number in range(7))
    new = apply("add", apply("tanh", apply("add", x0, r0)), apply("mul", p, c))
    return (apply("mul", apply("add", x1, r1), new), new)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("hidden", [1, 5, 33])
@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_two_states_and_lengths(element, hidden, reverse):
    steps, batch = 7, 5
    products = sample((steps, batch, 2 * hidden), element, -1, 1)
    matrix = sample((2 * hidden, hidden), element, -0.4, 0.4)
    initial = [sample((batch, hidden), element, -1, 1) for _ in range(2)]
    parameter = sample((hidden,), element, -1, 1)
    storage = Storage()
    views = [storage.result((steps, batch, hidden), element)]
    views += [storage.result((batch, hidden), element) for _ in range(2)]
    views += [storage.add(array) for array in (products, matrix, LENGTHS, *initial, parameter)]
    found = check(Recurrence(2, two_states(element), 1, None, reverse), views, storage).arrays
    h, c = (state.astype(np.float64) for state in initial)
    expected = np.zeros((steps, batch, hidden))
    for sequence, length in enumerate([4, 0, 7, 0, 7]):
        for step in range(length)[:: -1 if reverse else 1]:
            x, r = products[step, sequence].astype(np.float64), matrix.astype(np.float64) @ h[sequence]
            c[sequence] = np.tanh(x[:hidden] + r[:hidden]) + parameter * c[sequence]
            h[sequence] = (x[hidden:] + r[hidden:]) * c[sequence]
            expected[step, sequence] = h[sequence]
    tolerance = 1e-4 if element is F32 else 1e-12
    for array, reference in zip(found, (expected, h, c), strict=False):
        np.testing.assert_allclose(array, reference, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(6, 2, 9), (0, 2, 3), (2, 0, 3)], ids=str)
def test_the_last_gate_takes_another_factor(shape):
    steps, batch, hidden = shape
    h0, products = sample((batch, hidden), F32, -1, 1), sample((steps, batch, 2 * hidden), F32, -1, 1)
    matrix = sample((2 * hidden, hidden), F32, -0.4, 0.4)
    x0, x1, r0, r1, h = (Input(F32, number) for number in range(5))
    factor = apply("mul", apply("add", x0, r0), h)
    operation = Recurrence(2, (apply("tanh", apply("add", x1, r1)),), 0, factor)
    storage = Storage()
    views = [storage.result(shape), storage.result((batch, hidden))]
    views += [storage.add(array) for array in (products, matrix, np.full(batch, steps), h0)]
    found = check(operation, views, storage).arrays
    state = h0.astype(np.float64)
    for step in range(steps):
        gate = products[step, :, :hidden] + state @ matrix[:hidden].T
        state = np.tanh(products[step, :, hidden:] + (gate * state) @ matrix[hidden:].T)
        np.testing.assert_allclose(found[0][step], state, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], state, rtol=1e-4, atol=1e-4)
