"""Conversions of narrow numbers: every code, every float16, ties and their neighbours, against the lists of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import run_operation

from glowstone.lir import Elementwise
from glowstone.scalar import Input, Literal, apply, cast, evaluate, parse_expression
from glowstone.types import ElementType

NARROW = [element for element in ElementType if element.is_narrow]
INTEGERS = [element for element in NARROW if not element.wide.is_float]
POWERS = ElementType.F8E8M0
FLOATS = [element for element in NARROW if element.wide.is_float and element is not POWERS]
F16, F32, F64 = ElementType.F16, ElementType.F32, ElementType.F64
INFINITE, NOT_A_NUMBER, LARGEST = "infinity", "NaN", "largest"
BEYOND = {
    ElementType.F8E4M3FN: NOT_A_NUMBER,
    ElementType.F8E4M3FNUZ: NOT_A_NUMBER,
    ElementType.F8E5M2: INFINITE,
    ElementType.F8E5M2FNUZ: NOT_A_NUMBER,
    ElementType.F6E2M3: LARGEST,
    ElementType.F6E3M2: LARGEST,
    ElementType.F4E2M1: LARGEST,
}
"""What lies beyond the largest number becomes, by ONNX's tables, where `saturate` is 0."""


def computed(expression, *arrays):
    """The expression as machine code; the interpreter must find the same bytes."""
    output = np.zeros(arrays[0].shape, expression.element.dtype)
    found = run_operation(Elementwise((expression,), len(arrays)), [output, *arrays]).arrays[0]
    with np.errstate(all="ignore"):
        meaning = np.asarray(evaluate(expression, arrays))
    numbers = ~np.isnan(meaning.astype(np.float64))
    assert found.dtype == meaning.dtype
    assert found[numbers].tobytes() == meaning[numbers].tobytes()
    assert np.isnan(found[~numbers].astype(np.float64)).all()
    return found


def converted(x, element, saturates=True):
    return computed(cast(Input(ElementType.from_dtype(x.dtype), 0), element, saturates), x)


def codes_of(element):
    return np.arange(1 << element.bits).astype(np.uint8)


def magnitudes(element):
    """All numbers of a float type that are not negative, by code."""
    codes = codes_of(element)[: 1 << (element.bits - 1)]
    numbers = codes.view(element.dtype).astype(np.float64)
    return numbers[np.isfinite(numbers)]


def nearest(x, element, saturates):
    """x rounded to nearest, halves to the even code, by bisection of the list of numbers."""
    numbers = magnitudes(element)
    after = 2 * numbers[-1] - numbers[-2]  # the next number, had the format one
    codes = np.arange(len(numbers) + 1)
    middles = (np.append(numbers[1:], after) + numbers) / 2
    with np.errstate(invalid="ignore"):
        size = np.abs(x.astype(np.float64))
    below, above = np.searchsorted(middles, size, "left"), np.searchsorted(middles, size, "right")
    chosen = np.where(below == above, below, np.where(codes[below] % 2 == 0, below, above))
    largest = numbers[-1] if saturates or BEYOND[element] == LARGEST else None
    if largest is None:
        largest = np.inf if BEYOND[element] == INFINITE else np.nan
    result = np.append(numbers, largest)[chosen]
    result = np.where(np.signbit(x), -result, result)
    without_nan = BEYOND[element] == LARGEST
    return np.where(np.isnan(x), 0.0 if without_nan else np.nan, result)


def hard_numbers(element):
    """Float64: every number, every tie, their neighbours, and what is far outside."""
    numbers = magnitudes(element)
    ties = np.concatenate([(numbers[1:] + numbers[:-1]) / 2, [numbers[-1] * 1.5 - numbers[-2] / 2]])
    points = np.concatenate([numbers, ties, [1e-45, 1e-40, 1e30, np.inf, np.nan]])
    return np.concatenate([points, -points])


def numbers_of(source, element):
    """Numbers of a source type that are hard to convert."""
    random = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        points = hard_numbers(element).astype(source.dtype)
        if source is F16:
            return np.concatenate([points, np.arange(1 << 16).astype(np.uint16).view(np.float16)])
        close = np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf)])
        spread = np.exp2(random.uniform(-20, 18, 5000)) * random.choice([-1, 1], 5000)
        return np.concatenate([close, spread.astype(source.dtype)]).astype(source.dtype)


@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("source", [F16, F32, F64], ids=str)
@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_rounding_to_nearest(element, source, saturates):
    x = numbers_of(source, element)
    found = converted(x, element, saturates).astype(np.float64)
    np.testing.assert_array_equal(found, nearest(x, element, saturates))


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_signs_of_zeros(element):
    codes = converted(np.array([0.0, -0.0, -1e-30, np.nan], np.float32), element).view(np.uint8)
    has_one_zero = str(element).endswith("uz")
    assert list(codes[:3] != 0) == [False, not has_one_zero, not has_one_zero]


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_random_float32(element):
    x = np.random.default_rng(6).integers(0, 1 << 32, 20_000, np.uint64).astype(np.uint32).view(np.float32)
    found = converted(x, element).astype(np.float64)
    np.testing.assert_array_equal(found, nearest(x, element, saturates=True))


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_every_code_in_every_type(element):
    numbers = codes_of(element).view(element.dtype)
    found = converted(numbers, F64)
    np.testing.assert_array_equal(found, numbers.astype(np.float64))
    for target in ElementType:
        if target is not element:
            converted(numbers, target)


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_bits_above_a_narrow_integer_are_ignored(element):
    every_byte = np.arange(256).astype(np.uint8)
    kept = (every_byte & ((1 << element.bits) - 1)).view(element.dtype)
    assert converted(every_byte.view(element.dtype), ElementType.I32).tolist() == kept.astype(np.int32).tolist()


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_codes_come_back(element):
    codes = codes_of(element)
    for between in (F16, F32, F64):
        # powers of two reach beyond float16
        wide = converted(codes.view(element.dtype), between)
        kept = np.isfinite(wide) & (wide != 0) if element is POWERS else ~np.isnan(wide)
        assert converted(wide, element, saturates=False)[kept].tobytes() == codes[kept].tobytes()


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_integers(element):
    count, lowest = 1 << element.bits, -(1 << (element.bits - 1)) if element.is_signed else 0
    whole = np.arange(-300, 300)
    wrapped = (whole - lowest) % count + lowest
    for source in (ElementType.I16, ElementType.I32, ElementType.I64):
        assert converted(whole.astype(source.dtype), element).astype(int).tolist() == wrapped.tolist()
    for source in (F16, F32, F64):
        assert converted(whole.astype(source.dtype), element).astype(int).tolist() == wrapped.tolist()
    fractions = np.array([0.99, -0.99, 1.5, np.nan, 256.5], np.float32)
    assert converted(fractions, element).astype(int).tolist() == [0, 0, 1, 0, 0]


def test_powers_of_two_round_up():
    exponents = np.arange(-127, 128)
    powers = np.exp2(exponents.astype(np.float64))
    above = np.nextafter(powers, np.inf)
    for x, offset in ((powers, 0), (above, 1)):
        codes = exponents + 127 + offset
        assert converted(x, POWERS).view(np.uint8).tolist() == np.minimum(codes, 254).tolist()
        assert converted(x, POWERS, saturates=False).view(np.uint8).tolist() == codes.tolist()
    for x in (powers.astype(np.float32), np.nextafter(powers.astype(np.float32), np.float32(np.inf))):
        with np.errstate(all="ignore"):
            expected = np.minimum(np.ceil(np.log2(x.astype(np.float64))) + 127, 254)
        assert converted(x, POWERS).view(np.uint8).tolist() == expected.tolist()


def test_what_is_no_power_of_two():
    x = np.array([0.0, 1e-45, 2.0**-128, np.nan, np.inf, 3.4e38, -1.0, -np.inf], np.float32)
    assert converted(x, POWERS).view(np.uint8).tolist() == [0, 0, 0, 255, 254, 254, 255, 255]
    assert converted(x, POWERS, saturates=False).view(np.uint8).tolist() == [255] * len(x)


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_choice_and_literals(element):
    numbers = codes_of(element).view(element.dtype)
    condition = np.arange(len(numbers)) % 3 == 0
    one = Literal(element, 1)
    expression = apply("select", Input(ElementType.BOOL, 0), Input(element, 1), one)
    assert parse_expression(str(expression)) == expression
    found = computed(expression, condition, numbers)
    assert found[condition].tobytes() == numbers[condition].tobytes()
    assert (found[~condition].astype(np.float32) == 1).all()


@pytest.mark.parametrize("function", ["add", "less", "neg", "and"])
@pytest.mark.parametrize("element", NARROW, ids=str)
def test_there_is_no_arithmetic(element, function):
    operands = [Input(element, 0), Input(element, 1)][: 1 if function == "neg" else 2]
    with pytest.raises(TypeError, match=f"{element} has no arithmetic"):
        apply(function, *operands)


def test_text_of_conversions():
    for saturates in (True, False):
        expression = cast(Input(F32, 0), ElementType.F8E4M3FN, saturates)
        assert parse_expression(str(expression)) == expression
    for element in (ElementType.I8, ElementType.I4):
        assert cast(Input(F32, 0), element, saturates=False) == cast(Input(F32, 0), element)
