"""Every elementwise operator on every element type that its samples have: machine code against the evaluator.

All types of an operator are computed by one kernel, on ordinary numbers, the limits of the type, NaN and infinities.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import run_operation

from glowstone import scalar
from glowstone.graph import OPERATORS
from glowstone.lir import Elementwise
from glowstone.ops import Elementwise as ElementwiseOperator
from glowstone.scalar import Input
from glowstone.types import ElementType, is_float_dtype

COUNT = 96
TOLERANCES = {ElementType.F64: 2.0**-48, ElementType.F32: 2.0**-20, ElementType.F16: 2.0**-9, ElementType.BF16: 2.0**-6}
"""Of the result, or of the largest operand where that is larger: what steps that cancel may lose."""
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, -2.5, 30000.0]


def cases(kind) -> list:
    """(operator, element types), each once."""
    found = {}
    for sample in kind.samples():
        if any(operand is None for operand in sample.operands):
            continue
        elements = tuple(ElementType.from_dtype(np.asarray(operand).dtype) for operand in sample.operands)
        found[sample.operator, elements] = None
    return list(found)


OWN = {
    name: kind
    for name, kind in OPERATORS.items()
    if kind.__module__.startswith("glowstone.ops.")
    and issubclass(kind, ElementwiseOperator)
    and kind.expression is not ElementwiseOperator.expression
}


def numbers(element, random) -> np.ndarray:
    if element is ElementType.BOOL:
        return random.integers(0, 2, COUNT) == 1
    if element.is_narrow:
        return random.integers(0, 1 << element.bits, COUNT).astype(np.uint8).view(element.dtype)
    if element.is_float:
        values = random.uniform(-4, 4, COUNT)
        values[: len(SPECIAL)] = random.permutation(SPECIAL)
        return values.astype(element.dtype)
    limits = np.iinfo(element.dtype)
    values = random.integers(max(limits.min, -20), 21, COUNT).astype(element.dtype)
    values[:4] = random.permutation([limits.min, limits.max, 0, 1]).astype(element.dtype)
    return values


def assert_close(found, expected, operands, element) -> None:
    if element.is_narrow:
        found, expected = found.view(np.uint8), expected.view(np.uint8)
    if not is_float_dtype(expected.dtype):
        np.testing.assert_array_equal(found, expected)
        return
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    is_number = np.isfinite(expected)
    np.testing.assert_array_equal(found[~is_number], expected[~is_number])
    with np.errstate(all="ignore"):
        sizes = [np.abs(operand.astype(np.float64)) for operand in operands]
    scale = np.nanmax([np.abs(expected), *(np.where(np.isfinite(size), size, 0) for size in sizes)], axis=0)
    difference = np.abs(found - expected)[is_number]
    assert (difference <= TOLERANCES[element] * scale[is_number]).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OWN)
def test_machine_code_agrees_with_the_evaluator(name):
    random = np.random.default_rng(len(name))
    expressions, arrays, parts = [], [], []
    for operator, elements in cases(OWN[name]):
        operands = [numbers(element, random) for element in elements]
        moved = [Input(element, len(arrays) + index) for index, element in enumerate(elements)]
        plain = operator.scalar_expression(elements)
        expressions.append(scalar.substitute(plain, moved))
        parts.append((operator, operands, plain))
        arrays += operands
    outputs = [np.zeros(COUNT, expression.element.dtype) for expression in expressions]
    found = run_operation(Elementwise(tuple(expressions), len(arrays)), [*outputs, *arrays]).arrays
    for result, (operator, operands, plain) in zip(found, parts, strict=False):
        expected = np.broadcast_to(scalar.evaluate(plain, operands), COUNT)
        assert result.dtype == expected.dtype
        try:
            assert_close(result, expected, operands, plain.element)
        except AssertionError as error:
            raise AssertionError(f"{operator} of {[str(operand.dtype) for operand in operands]}") from error
