"""Remainders, shifts and reinterpreted bits as machine code, against exact arithmetic and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import run_operation

from glowstone.lir import Elementwise
from glowstone.scalar import Input, apply, evaluate, reinterpret
from glowstone.types import ElementType

FLOATS = [element for element in ElementType if element.is_float]
INTEGERS = [element for element in ElementType if element.is_integer]


def compute(expression, *arrays):
    out = np.zeros(arrays[0].shape, expression.element.dtype)
    return run_operation(Elementwise((expression,), len(arrays)), [out, *arrays]).arrays[0]


def every_pair(values):
    x, y = (grid.reshape(-1) for grid in np.meshgrid(values, values))
    return x, y


def all_exponents(element, count):
    """Floats with bits spread over all of the type, and the special ones."""
    bits = np.random.default_rng(3).integers(0, 1 << (8 * element.size), count, dtype=np.uint64)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 5.5, 0.1])
    with np.errstate(all="ignore"):
        return np.concatenate([bits.astype(f"u{element.size}").view(element.dtype), special.astype(element.dtype)])


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_remainders_of_floats_are_exact(element):
    x, y = every_pair(all_exponents(element, 150))
    with np.errstate(all="ignore"):
        exact = np.fmod(x.astype(np.float64), y.astype(np.float64))
    found = compute(apply("rem", Input(element, 0), Input(element, 1)), x, y).astype(np.float64)
    np.testing.assert_array_equal(found, exact)
    numbers = ~np.isnan(exact)
    assert (np.signbit(found) == np.signbit(exact))[numbers].all()


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_remainders_of_integers(element):
    limits = np.iinfo(element.dtype)
    x, y = every_pair(np.array([limits.min, limits.min + 1, limits.max, 0, 1, 2, 3, 7, 100], element.dtype))
    exact = [
        0 if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1) for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    found = compute(apply("rem", Input(element, 0), Input(element, 1)), x, y)
    assert found.tolist() == exact


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_shifts_by_any_count(element):
    limits, bits = np.iinfo(element.dtype), 8 * element.size
    counts = [0, 1, 3, bits - 1, bits, min(bits + 1, limits.max), limits.max] + [-1] * element.is_signed
    values, numbers = np.array([limits.min, limits.max, 1, 77], element.dtype), np.array(counts, element.dtype)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(values, numbers))
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    left = [(a << b) & ((1 << bits) - 1) if 0 <= b < bits else 0 for a, b in pairs]
    right = [a >> b if 0 <= b < bits else -1 if a < 0 else 0 for a, b in pairs]
    operands = Input(element, 0), Input(element, 1)
    shifted = compute(apply("shift_left", *operands), x, y)
    assert shifted.view(f"u{element.size}").tolist() == left
    assert compute(apply("shift_right", *operands), x, y).tolist() == right


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("source", ElementType, ids=str)
def test_bits_as_every_type_of_the_size(source):
    random = np.random.default_rng(4)
    bits = random.integers(0, 1 << source.bits, 70, dtype=np.uint64).astype(f"u{source.size}")
    x = bits % 2 == 1 if source is ElementType.BOOL else bits.view(source.dtype)
    for target in ElementType:
        if target.bits != source.bits:
            continue
        expression = reinterpret(Input(source, 0), target)
        found = compute(expression, x)
        assert found.dtype == target.dtype
        expected = x.view(np.uint8) != 0 if target is ElementType.BOOL else x.view(target.dtype)
        # a NaN of 16 bits may lose its payload on the way through float32
        numbers = np.full(x.shape, True) if source.size == 1 else (x == x) & (expected == expected)
        assert found[numbers].tobytes() == expected[numbers].tobytes(), target
        assert evaluate(expression, [x]).tobytes() == expected.tobytes(), target


def test_another_size_is_refused():
    with pytest.raises(TypeError, match="differ in size"):
        reinterpret(Input(ElementType.F32, 0), ElementType.I64)
