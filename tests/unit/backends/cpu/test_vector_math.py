"""Accuracy of the generated functions over their whole range, against float64 and extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import make_view, run, run_operation
from scipy import special

from glowstone.lir import Elementwise, Instruction
from glowstone.scalar import FUNCTIONS as FUNCTIONS_OF_SCALARS
from glowstone.scalar import Input, Literal, apply, cast, convert
from glowstone.types import ElementType

F16, F32, F64, BF16 = ElementType.F16, ElementType.F32, ElementType.F64, ElementType.BF16
BOUND = 4.0
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1e-40, -1e-40, 1e38, 2.5, 1e300]


def compute(expression, *arrays):
    return compute_all([expression], *arrays)[0]


def compute_all(expressions, *arrays):
    """The values of several expressions, from one kernel."""
    outputs = [np.zeros(arrays[0].shape, expression.element.dtype) for expression in expressions]
    found = run_operation(Elementwise(tuple(expressions), len(arrays)), [*outputs, *arrays])
    return found.arrays[: len(expressions)]


def unary(function, element, x):
    return compute(apply(function, Input(element, 0)), x)


def worst_ulp(found, reference):
    """Largest distance in units in the last place; infinities and NaN must be in the same places."""
    with np.errstate(all="ignore"):
        rounded = reference.astype(found.dtype)
        assert (np.isnan(found) == np.isnan(rounded)).all()
        info = np.finfo(found.dtype)
        unit = np.spacing(np.clip(np.abs(rounded), info.tiny, info.max))
        error = np.abs(found.astype(np.longdouble) - reference) / unit
        at_limit = np.isinf(rounded) | np.isinf(found) | np.isnan(rounded)
        assert (found == rounded)[at_limit & ~np.isnan(rounded)].all()
    return float(error[~at_limit].max())


def every_exponent_f32():
    bits = np.arange(0, 1 << 32, 9973, dtype=np.uint64).astype(np.uint32)
    dense = np.linspace(-12, 12, 40_001, dtype=np.float32)
    near_one = np.linspace(0.4, 2.5, 40_001, dtype=np.float32)
    with np.errstate(all="ignore"):
        return np.concatenate([bits.view(np.float32), dense, near_one, np.array(SPECIAL).astype(np.float32)])


def every_exponent_f64():
    bits = np.arange(0, 1 << 64, (1 << 64) // 100_003, dtype=np.uint64)
    ranges = [np.linspace(-12, 12, 40_001), np.linspace(0.4, 2.5, 40_001), np.linspace(-750, 715, 40_001)]
    return np.concatenate([bits.view(np.float64), *ranges, np.array(SPECIAL)])


FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "sigmoid": special.expit,
    "erf": special.erf,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_float32_is_accurate_everywhere(function):
    x = every_exponent_f32()
    with np.errstate(all="ignore"):
        reference = FUNCTIONS[function](x.astype(np.float64))
    assert worst_ulp(unary(function, F32, x), reference) <= BOUND


@pytest.mark.parametrize("function", FUNCTIONS)
def test_float64_is_accurate_everywhere(function):
    x = every_exponent_f64()
    with np.errstate(all="ignore"):
        reference = FUNCTIONS[function](x if function == "erf" else x.astype(np.longdouble))
    assert worst_ulp(unary(function, F64, x), reference) <= BOUND


@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_pow(element):
    random = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        special_values = np.array([*SPECIAL, 5.0, -2.0, 1.0000001, 0.999999, 700.0]).astype(element.dtype)
        x, y = (grid.reshape(-1) for grid in np.meshgrid(special_values, special_values))
        magnitudes = np.exp(random.uniform(-80, 80, 100_000)).astype(element.dtype)
        exponents = (random.uniform(-80, 80, 100_000) / np.log(magnitudes)).astype(element.dtype)
        x, y = np.concatenate([x, magnitudes]), np.concatenate([y, exponents])
        wide = np.longdouble if element is F64 else np.float64
        reference = np.power(x.astype(wide), y.astype(wide))
    found = compute(apply("pow", Input(element, 0), Input(element, 1)), x, y)
    assert worst_ulp(found, reference) <= BOUND
    assert (np.signbit(found) == np.signbit(reference))[found == 0].all()


@pytest.mark.parametrize("exponent", [0.0, 0.5, -0.5, 1.0, 2.0, 3.0, -1.0, 1.7, -2.0])
def test_pow_with_constant_exponent(exponent):
    x = every_exponent_f32()
    exponents = np.full(x.shape, np.float32(exponent), np.float64)  # NumPy takes a scalar 0.5 for a square root
    with np.errstate(all="ignore"):
        reference = np.power(x.astype(np.float64), exponents)
    found = compute(apply("pow", Input(F32, 0), Literal(F32, exponent)), x)
    assert worst_ulp(found, reference) <= BOUND


def all_f16():
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def bf16_to_f32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(x):
    """Rounded to nearest even, by exact arithmetic on the bits."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def same_float(found, reference):
    return ((found == reference) | (np.isnan(found) & np.isnan(reference))).all()


def test_every_f16_to_f32_and_back():
    x = all_f16()
    assert same_float(compute(cast(Input(F16, 0), F32), x), x.astype(np.float32))
    assert same_float(unary("neg", F16, x), -x)


def test_f32_to_f16_rounds_to_nearest_even():
    x = every_exponent_f32()
    middles = (all_f16().astype(np.float64) + 2.0**-25).astype(np.float32)
    x = np.concatenate([x, middles, np.array([65519.996, 65520, 65504, 2.0**-25, 3 * 2.0**-25], np.float32)])
    with np.errstate(all="ignore"):
        assert same_float(compute(cast(Input(F32, 0), F16), x), x.astype(np.float16))


def test_f64_to_f16_rounds_once():
    half = all_f16().astype(np.float64)
    x = np.concatenate([half * (1 + 2.0**-11), half * (1 + 2.0**-11 + 2.0**-40), half * (1 + 2.0**-11 - 2.0**-40)])
    with np.errstate(all="ignore"):
        assert same_float(compute(cast(Input(F64, 0), F16), x), x.astype(np.float16))


@pytest.mark.parametrize("function", ["add", "sub", "mul", "div", "min", "max"])
def test_f16_arithmetic_is_exactly_rounded(function):
    random = np.random.default_rng(1)
    x, y = (random.integers(0, 1 << 16, 60_000, dtype=np.uint16).view(np.float16) for _ in range(2))
    numpy_function = {"min": np.minimum, "max": np.maximum, "div": np.divide}.get(function)
    numpy_function = numpy_function or {"add": np.add, "sub": np.subtract, "mul": np.multiply}[function]
    with np.errstate(all="ignore"):
        reference = numpy_function(x, y)
    assert same_float(compute(apply(function, Input(F16, 0), Input(F16, 1)), x, y), reference)


def test_f16_transcendental_functions():
    x = all_f16()
    with np.errstate(all="ignore"):
        for function, reference in FUNCTIONS.items():
            assert worst_ulp(unary(function, F16, x), reference(x.astype(np.float64))) <= 1.0, function


def test_bf16_arithmetic_is_exactly_rounded():
    random = np.random.default_rng(2)
    x, y = (random.integers(0, 1 << 16, 60_000, dtype=np.uint16) for _ in range(2))
    expression = apply("add", Input(BF16, 0), Input(BF16, 1))
    out = np.zeros(x.shape, np.uint16)
    found = run_bf16(expression, out, x, y)
    with np.errstate(all="ignore"):
        reference = f32_to_bf16(bf16_to_f32(x) + bf16_to_f32(y))
    assert same_float(bf16_to_f32(found), bf16_to_f32(reference))


def run_bf16(expression, out, *arrays):
    made = [make_view(array, element=BF16) for array in (out, *arrays)]
    instruction = Instruction(Elementwise((expression,), len(arrays)), tuple(view for view, _ in made))
    return run(instruction, {view.buffer: flat for view, flat in made}).arrays[0]


INTEGERS = [element for element in ElementType if element.is_integer]


def integer_samples(element):
    limits = np.iinfo(element.dtype)
    random = np.random.default_rng(3)
    edge = [limits.min, limits.max, 0, 1, limits.max // 2, 7, limits.min + 1, 3]
    if element.is_signed:
        edge += [-1, -2, -7]
    wide = random.integers(limits.min, limits.max, 500, element.dtype, endpoint=True)
    return np.concatenate([np.array(edge, element.dtype), wide])


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_integer_arithmetic(element):
    sample = integer_samples(element)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(sample, sample[:40]))
    with np.errstate(all="ignore"):
        exact_x, exact_y = x.astype(object), y.astype(object)
        bits = 8 * element.size
        wrap = lambda values: np.array([int(v) & ((1 << bits) - 1) for v in values], np.uint64).astype(element.dtype)  # noqa: E731
        quotients = [
            0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            for a, b in zip(exact_x, exact_y, strict=True)
        ]
        references = {
            "add": wrap(exact_x + exact_y),
            "sub": wrap(exact_x - exact_y),
            "mul": wrap(exact_x * exact_y),
            "div": wrap(quotients),
            "min": np.minimum(x, y),
            "max": np.maximum(x, y),
            "and": x & y,
            "or": x | y,
            "xor": x ^ y,
            "less": x < y,
            "less_equal": x <= y,
            "equal": x == y,
        }
    references |= {"neg": wrap(-exact_x), "abs": wrap(abs(exact_x)), "not": ~x, "round": x}
    inputs = [Input(element, 0), Input(element, 1)]
    expressions = [apply(function, *inputs[: FUNCTIONS_OF_SCALARS[function].arity]) for function in references]
    for found, (function, reference) in zip(compute_all(expressions, x, y), references.items(), strict=True):
        assert np.array_equal(found, reference), function


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_integer_pow_wraps(element):
    base = integer_samples(element)[:60]
    exponent = np.arange(70).astype(element.dtype) if not element.is_signed else np.arange(-3, 67).astype(element.dtype)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(base, exponent))

    def power(a, b):
        if b >= 0:
            return pow(int(a), int(b), 1 << (8 * element.size))
        return {1: 1, -1: -1 if b % 2 else 1}.get(int(a), 0)

    mask = (1 << (8 * element.size)) - 1
    reference = np.array([power(a, b) & mask for a, b in zip(x, y, strict=True)], np.uint64).astype(element.dtype)
    found = compute(apply("pow", Input(element, 0), Input(element, 1)), x, y)
    assert np.array_equal(found, reference)


@pytest.mark.parametrize("source", ElementType, ids=str)
def test_casts(source):
    with np.errstate(all="ignore"):
        if source is ElementType.BOOL:
            x = np.array([True, False] * 20)
        elif source.is_narrow:
            x = np.arange(1 << source.bits).astype(np.uint8).view(source.dtype)
        elif source.is_integer:
            x = integer_samples(source)
        else:
            x = np.array([*SPECIAL, 127.5, -128.9, 255.9, 3e9, -3e9, 1e19, -1e19, 2.0**31, 2.0**63]).astype(
                source.dtype
            )
        references = [convert(x, target) for target in ElementType]
    operation = Elementwise(tuple(cast(Input(source, 0), target) for target in ElementType), 1)
    outputs = [np.zeros(x.shape, target.dtype) for target in ElementType]
    found = run_operation(operation, [*outputs, x]).arrays
    for target, array, reference in zip(ElementType, found, references, strict=False):
        if target.is_narrow:
            array, reference = array.view(np.uint8), reference.view(np.uint8)
        assert same_float(array, reference) if target.is_float else np.array_equal(array, reference), target


@pytest.mark.parametrize("element", [F16, F32, F64], ids=str)
def test_exact_float_functions(element):
    with np.errstate(all="ignore"):
        x = np.concatenate([np.array(SPECIAL), np.arange(-40, 40) / 8, [1e15 + 0.5]]).astype(element.dtype)
    y = x[::-1].copy()
    for function, reference in {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "abs": np.abs}.items():
        found = unary(function, element, x)
        assert same_float(found, reference(x))
        assert (np.signbit(found) == np.signbit(reference(x)))[x == x].all()
    pairs = {"min": np.minimum, "max": np.maximum, "less": np.less, "less_equal": np.less_equal, "equal": np.equal}
    for function, reference in pairs.items():
        found = compute(apply(function, Input(element, 0), Input(element, 1)), x, y)
        assert same_float(found, reference(x, y)), function
    for literal in (0.0, np.nan, 1.5):
        for function in ("min", "max"):
            found = compute(apply(function, Input(element, 0), Literal(element, literal)), x)
            assert same_float(found, pairs[function](x, element.dtype.type(literal))), (function, literal)


def test_booleans():
    x, y = np.array([False, True, False, True] * 9), np.array([False, False, True, True] * 9)
    a, b = Input(ElementType.BOOL, 0), Input(ElementType.BOOL, 1)
    references = {"and": x & y, "or": x | y, "xor": x ^ y, "less": x < y, "equal": x == y, "max": x | y, "mul": x & y}
    for function, reference in references.items():
        assert np.array_equal(compute(apply(function, a, b), x, y), reference), function
    assert np.array_equal(compute(apply("not", a), x), ~x)
    chosen = compute(apply("select", a, Literal(F32, 2.0), Literal(F32, -1.0)), x)
    assert np.array_equal(chosen, np.where(x, np.float32(2), np.float32(-1)))
