"""Elementwise operators: each states its meaning once, as a scalar expression."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from glowstone import scalar
from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import ALL, BOOLS, FLOATS, HALVES, NUMBERS, SIGNED
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.types import CHANNEL_AXIS, ElementType, Shape, TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]

UNARY = (Operand("x", ALL),)


class Elementwise(Operator):
    """Base: `expression` of the operands at each position, after broadcasting.

    A blocked result needs its operands blocked the same way; operands of one element may be plain.
    """

    def expression(self, *inputs: Expression) -> Expression:
        """The value of one element.

        Raises:
            TypeError: element types that do not go together.
        """
        raise NotImplementedError

    def scalar_expression(self, elements: tuple[ElementType, ...]) -> Expression:
        """`expression` over inputs 0, 1, ... of these element types.

        Raises:
            ModelError: element types that do not go together.
        """
        return _scalar_expression(self, elements)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        expression = self.scalar_expression(tuple(operand.element for operand in operands))
        shape = broadcast_shapes(*(operand.shape for operand in operands))
        return (TensorType(expression.element, shape, _common_block(operands, shape)),)

    def reference(self, *operands: Array) -> Array:
        elements = tuple(ElementType.from_dtype(np.asarray(operand).dtype) for operand in operands)
        shape = broadcast_shapes(*(np.shape(operand) for operand in operands))
        result = scalar.evaluate(self.scalar_expression(elements), operands)
        return np.broadcast_to(result, shape)


@functools.lru_cache(maxsize=4096)
def _scalar_expression(operator: Elementwise, elements: tuple[ElementType, ...]) -> Expression:
    try:
        return operator.expression(*(Input(element, index) for index, element in enumerate(elements)))
    except TypeError as error:
        raise ModelError(
            "element types do not go together", operator=operator.name, found=", ".join(map(str, elements))
        ) from error


def _common_block(operands: Sequence[Value], shape: Shape) -> int | None:
    """The layout of the result: the operands' own, which must agree but for plain single elements."""
    block = next((operand.type.channel_block for operand in operands if operand.type.channel_block), None)
    for operand in operands:
        check_layout(operand.type, shape, block)
    return block


def check_layout(operand: TensorType, shape: Shape, block: int | None) -> None:
    """Check an operand of an elementwise computation whose result has this shape and layout.

    Raises:
        ShapeError: another layout (a plain single element goes with any), or blocked channels that would broadcast.
    """
    if operand.channel_block is None and (block is None or operand.size == 1):
        return
    if operand.channel_block != block or operand.rank != len(shape):
        raise ShapeError("operands have different layouts", expected=f"channel block {block}", found=str(operand))
    if operand.shape[CHANNEL_AXIS] != shape[CHANNEL_AXIS]:
        raise ShapeError("channels inside blocks cannot broadcast", expected=list(shape), found=str(operand))


class Unary(Elementwise):
    """Base: one operand; `function` names the scalar function, `domain` is where samples lie."""

    operands = UNARY
    function: ClassVar[str] = ""
    domain: ClassVar[tuple[float, float]] = (-3.0, 3.0)

    def expression(self, *inputs: Expression) -> Expression:
        return apply(self.function, *inputs)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return unary_samples(cls(), *cls.domain)


class Binary(Elementwise):
    """Base: two operands of one element type; `function` names the scalar function."""

    function: ClassVar[str] = ""

    def expression(self, *inputs: Expression) -> Expression:
        return apply(self.function, *inputs)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return binary_samples(cls())

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x: Array = np.ones((2, 3), np.bool_ if cls.operands[0].elements is BOOLS else np.float32)
        return [ErrorSample(cls(), (x, x[:, :2]), "broadcast")]


def unary_samples(operator: Operator, low: float = -3.0, high: float = 3.0) -> list[Sample]:
    """Arrays of several shapes, and of every element type."""
    elements = operator.operands[0].elements or ALL
    main = main_element(elements)
    generator = np.random.default_rng(0)
    shapes: list[tuple[int, ...]] = [(), (1,), (17,), (2, 3, 5), (0, 4)]
    plain = [Sample(operator, (_random(generator, shape, main, low, high),)) for shape in shapes]
    return plain + typed_samples(operator, elements - {main}, low, high)


def binary_samples(operator: Operator, low: float = -3.0, high: float = 3.0) -> list[Sample]:
    """Equal shapes, every way of broadcasting, and every element type."""
    elements = operator.operands[0].elements or ALL
    main = main_element(elements)
    generator = np.random.default_rng(1)
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((), ()),
        ((19,), (19,)),
        ((2, 3, 4), (3, 1)),
        ((1, 5), (4, 1)),
        ((0, 3), (3,)),
        ((2, 1, 3), ()),
    ]
    plain = [Sample(operator, tuple(_random(generator, shape, main, low, high) for shape in pair)) for pair in pairs]
    return plain + typed_samples(operator, elements - {main}, low, high)


def typed_samples(
    operator: Operator, elements: Iterable[ElementType], low: float = -3.0, high: float = 3.0
) -> list[Sample]:
    """One sample of each element type, of equal shapes; what rounding may do is in its tolerance."""
    generator = np.random.default_rng(2)
    shape = (3, 7)
    return [
        Sample(
            operator,
            tuple(_random(generator, shape, element, low, high) for _ in operator.operands),
            HALF_TOLERANCES.get(element, Sample.tolerance),
        )
        for element in sorted(elements, key=str)
    ]


HALF_TOLERANCES = {ElementType.F16: 2.0**-10, ElementType.BF16: 2.0**-7}
"""One unit in the last place."""
INTEGER_RANGE = 3
"""Integers of samples reach this many times further than floats."""


def main_element(elements: frozenset[ElementType]) -> ElementType:
    """float32, or else the first by name."""
    return ElementType.F32 if ElementType.F32 in elements else min(elements, key=str)


def _random(
    generator: np.random.Generator, shape: tuple[int, ...], element: ElementType, low: float, high: float
) -> Array:
    values = generator.uniform(low, high, shape)
    if element is ElementType.BOOL:
        return np.asarray(values > 0)
    if element.is_integer:
        values = np.rint(INTEGER_RANGE * (values if element.is_signed else np.abs(values)))
    return np.asarray(values).astype(element.dtype)


TWO_NUMBERS = (Operand("x", NUMBERS), Operand("y", NUMBERS))
TWO_BOOLS = (Operand("x", BOOLS), Operand("y", BOOLS))
TWO_OF_ANY = (Operand("x", ALL), Operand("y", ALL))
FLOAT = (Operand("x", FLOATS),)


@operator
class Add(Binary):
    """x + y. ONNX Add-14."""

    onnx = "Add-14"
    operands = TWO_NUMBERS
    function = "add"
    commutative = True


@operator
class Sub(Binary):
    """x - y. ONNX Sub-14."""

    onnx = "Sub-14"
    operands = TWO_NUMBERS
    function = "sub"


@operator
class Mul(Binary):
    """x * y. ONNX Mul-14."""

    onnx = "Mul-14"
    operands = TWO_NUMBERS
    function = "mul"
    commutative = True


@operator
class Div(Binary):
    """x / y; integers truncate toward zero. ONNX Div-14."""

    onnx = "Div-14"
    operands = TWO_NUMBERS
    function = "div"


@operator
class Pow(Elementwise):
    """x to the power y, in x's element type. ONNX Pow-15."""

    onnx = "Pow-15"
    operands = (Operand("x", NUMBERS), Operand("y", NUMBERS))

    def expression(self, *inputs: Expression) -> Expression:
        x, y = inputs
        wide = _power_element(x.element, y.element)
        return scalar.cast(apply("pow", scalar.cast(x, wide), scalar.cast(y, wide)), x.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        base = np.linspace(0.1, 3, 12, dtype=np.float32).reshape(3, 4)
        return [
            *binary_samples(cls(), 0.1, 3.0),
            Sample(cls(), (base, np.array(2, np.float32))),
            Sample(cls(), (base, np.array([2, 0, -1, 3], np.int64))),
            *(Sample(cls(), pair, 2.0**-7) for pair in _power_pairs()),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [ErrorSample(cls(), (x, x[:, :2]), "broadcast")]


def _power_pairs() -> list[tuple[Array, Array]]:
    """A base of every element type that may be one, to an exponent of every other."""
    base, exponent = np.array([1, 2, 3, 5]), np.array([3, 2, 0, 1])
    bases = (*sorted(FLOATS, key=str), ElementType.I32, ElementType.I64)
    exponents = sorted(NUMBERS, key=str)
    return [(base.astype(x.dtype), exponent.astype(y.dtype)) for x in bases for y in exponents]


def _power_element(x: ElementType, y: ElementType) -> ElementType:
    """What x^y is computed in: of two floats the larger; of two integers 64 bits, for the result wraps."""
    if x is y or (x.is_float and not y.is_float and x.size >= ElementType.F32.size):
        return x
    if not x.is_float:
        wide = ElementType.I64 if y.is_signed else ElementType.U64
        return ElementType.F64 if y.is_float else wide
    if y.is_float and y.size > x.size:
        return y
    return x if y.is_float and y.size < x.size else ElementType.F32


@operator
class Maximum(Binary):
    """The larger of x and y; NaN if either is. ONNX Max-13 of two operands."""

    onnx = "Max-13"
    operands = TWO_NUMBERS
    function = "max"
    commutative = True


@operator
class Minimum(Binary):
    """The smaller of x and y; NaN if either is. ONNX Min-13 of two operands."""

    onnx = "Min-13"
    operands = TWO_NUMBERS
    function = "min"
    commutative = True


@operator
class Equal(Binary):
    """x == y. ONNX Equal-13."""

    onnx = "Equal-13"
    operands = TWO_OF_ANY
    function = "equal"
    commutative = True


@operator
class Less(Binary):
    """x < y. ONNX Less-13."""

    onnx = "Less-13"
    operands = TWO_NUMBERS
    function = "less"


@operator
class LessOrEqual(Binary):
    """x <= y. ONNX LessOrEqual-16."""

    onnx = "LessOrEqual-16"
    operands = TWO_NUMBERS
    function = "less_equal"


@operator
class Greater(Binary):
    """x > y. ONNX Greater-13."""

    onnx = "Greater-13"
    operands = TWO_NUMBERS

    def expression(self, *inputs: Expression) -> Expression:
        return apply("less", inputs[1], inputs[0])


@operator
class GreaterOrEqual(Binary):
    """x >= y. ONNX GreaterOrEqual-16."""

    onnx = "GreaterOrEqual-16"
    operands = TWO_NUMBERS

    def expression(self, *inputs: Expression) -> Expression:
        return apply("less_equal", inputs[1], inputs[0])


@operator
class And(Binary):
    """Both. ONNX And-7."""

    onnx = "And-7"
    operands = TWO_BOOLS
    function = "and"
    commutative = True


@operator
class Or(Binary):
    """Either. ONNX Or-7."""

    onnx = "Or-7"
    operands = TWO_BOOLS
    function = "or"
    commutative = True


@operator
class Xor(Binary):
    """Exactly one. ONNX Xor-7."""

    onnx = "Xor-7"
    operands = TWO_BOOLS
    function = "xor"
    commutative = True


@operator
class Not(Unary):
    """Negation. ONNX Not-1."""

    onnx = "Not-1"
    operands = (Operand("x", BOOLS),)
    function = "not"


@operator
class Neg(Unary):
    """-x. ONNX Neg-13."""

    onnx = "Neg-13"
    operands = (Operand("x", SIGNED),)
    function = "neg"


@operator
class Abs(Unary):
    """Magnitude. ONNX Abs-13."""

    onnx = "Abs-13"
    operands = (Operand("x", NUMBERS),)
    function = "abs"


@operator
class Sqrt(Unary):
    """Square root; NaN below zero. ONNX Sqrt-13."""

    onnx = "Sqrt-13"
    operands = FLOAT
    function = "sqrt"


@operator
class Exp(Unary):
    """e to the power x. ONNX Exp-13."""

    onnx = "Exp-13"
    operands = FLOAT
    function = "exp"


@operator
class Log(Unary):
    """Natural logarithm; NaN below zero. ONNX Log-13."""

    onnx = "Log-13"
    operands = FLOAT
    function = "log"


@operator
class Tanh(Unary):
    """Hyperbolic tangent. ONNX Tanh-13."""

    onnx = "Tanh-13"
    operands = FLOAT
    function = "tanh"


@operator
class Erf(Unary):
    """Error function. ONNX Erf-13."""

    onnx = "Erf-13"
    operands = FLOAT
    function = "erf"


@operator
class Floor(Unary):
    """Largest integer not above x. ONNX Floor-13."""

    onnx = "Floor-13"
    operands = FLOAT
    function = "floor"


@operator
class Ceil(Unary):
    """Smallest integer not below x. ONNX Ceil-13."""

    onnx = "Ceil-13"
    operands = FLOAT
    function = "ceil"


@operator
class Round(Unary):
    """Nearest integer, halves to even. ONNX Round-11."""

    onnx = "Round-11"
    operands = FLOAT
    function = "round"


@operator
class Reciprocal(Unary):
    """1 / x. ONNX Reciprocal-13."""

    onnx = "Reciprocal-13"
    operands = FLOAT

    def expression(self, *inputs: Expression) -> Expression:
        return apply("div", Literal(inputs[0].element, 1.0), inputs[0])


@operator
class Relu(Unary):
    """x where positive, else 0. ONNX Relu-14."""

    onnx = "Relu-14"
    operands = (Operand("x", SIGNED),)

    def expression(self, *inputs: Expression) -> Expression:
        return apply("max", inputs[0], Literal(inputs[0].element, 0))


@operator
class LeakyRelu(Unary):
    """x where x >= 0, alpha * x elsewhere. ONNX LeakyRelu-16."""

    onnx = "LeakyRelu-16"
    operands = FLOAT
    alpha: float = 0.01

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(self._leaky, *inputs)

    def _leaky(self, x: Expression) -> Expression:
        negative = apply("less", x, Literal(x.element, 0.0))
        return apply("select", negative, apply("mul", x, Literal(x.element, self.alpha)), x)


@operator
class Sigmoid(Unary):
    """1 / (1 + exp(-x)). ONNX Sigmoid-13."""

    onnx = "Sigmoid-13"
    operands = FLOAT

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(sigmoid, *inputs)


def in_float32(body: Callable[..., Expression], *inputs: Expression) -> Expression:
    """`body` of the inputs; 16-bit floats are computed in float32 and rounded once."""
    element = inputs[0].element
    if element not in HALVES:
        return body(*inputs)
    return scalar.cast(body(*(scalar.cast(value, ElementType.F32) for value in inputs)), element)


def sigmoid(x: Expression) -> Expression:
    """1 / (1 + exp(-x))."""
    one = Literal(x.element, 1.0)
    return apply("div", one, apply("add", one, apply("exp", apply("neg", x))))


@operator
class HardSigmoid(Unary):
    """max(0, min(1, alpha * x + beta)). ONNX HardSigmoid-6."""

    onnx = "HardSigmoid-6"
    operands = FLOAT
    alpha: float = 0.2
    beta: float = 0.5

    def expression(self, *inputs: Expression) -> Expression:
        return in_float32(self._limited_line, *inputs)

    def _limited_line(self, x: Expression) -> Expression:
        line = apply("add", apply("mul", x, Literal(x.element, self.alpha)), Literal(x.element, self.beta))
        return apply("max", apply("min", line, Literal(x.element, 1.0)), Literal(x.element, 0.0))


@operator
class Clip(Elementwise):
    """x limited to [low, high]; either limit may be left out. ONNX Clip-13."""

    onnx = "Clip-13"
    operands = (Operand("x", NUMBERS), Operand("low", NUMBERS, optional=True), Operand("high", NUMBERS, optional=True))

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        x = operands[0]
        assert x is not None
        for limit in operands[1:]:
            if limit is not None and (limit.type.size != 1 or limit.element is not x.element):
                raise ShapeError(
                    "a limit of Clip is one element of x's type", expected=f"{x.element}[]", found=str(limit.type)
                )
        return (x.type,)

    def reference(self, *operands: Any) -> Array:
        x, low, high = (*operands, None, None)[:3]
        result = x if low is None else np.maximum(x, np.reshape(low, ()))
        return np.asarray(result if high is None else np.minimum(result, np.reshape(high, ())))

    def decompose(self, builder: Any, *operands: Any) -> Value:
        x, low, high = (*operands, None, None)[:3]
        result: Value = x
        if low is not None:
            result = builder.emit(Maximum(), result, low)
        if high is not None:
            result = builder.emit(Minimum(), result, high)
        return builder.emit(Identity(), result) if result is x else result

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.linspace(-3, 3, 20, dtype=np.float32).reshape(4, 5)
        one, two = np.array(-1, np.float32), np.array(2, np.float32)
        return [
            Sample(cls(), (x, one, two)),
            Sample(cls(), (x, None, two)),
            Sample(cls(), (x, one)),
            Sample(cls(), (x,)),
            Sample(cls(), (x, two, one)),
            Sample(cls(), (np.arange(9), np.array(2), np.array(5))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 2), np.float32)
        return [ErrorSample(cls(), (x, x), "a limit of Clip")]


@operator
class Where(Elementwise):
    """x where the condition holds, else y. ONNX Where-16."""

    onnx = "Where-16"
    operands = (Operand("condition", BOOLS), Operand("x", ALL), Operand("y", ALL))

    def expression(self, *inputs: Expression) -> Expression:
        return apply("select", *inputs)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        mask = np.array([[True], [False], [True]])
        return [
            Sample(cls(), (mask, np.arange(4, dtype=np.float32), np.array(-1, np.float32))),
            Sample(cls(), (mask, np.arange(4), np.arange(3).reshape(3, 1))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        mask, x = np.ones(3, np.bool_), np.ones(3, np.float32)
        return [
            ErrorSample(cls(), (mask, x, x[:2]), "broadcast"),
            ErrorSample(cls(), (mask, x, np.arange(3)), "element types do not go together"),
        ]


@operator
class Cast(Elementwise):
    """Conversion to another element type. ONNX Cast-13."""

    onnx = "Cast-13"
    operands = UNARY
    to: ElementType = ElementType.F32

    def expression(self, *inputs: Expression) -> Expression:
        return scalar.cast(inputs[0], self.to)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.array([-3.7, -0.5, 0.0, 0.5, 100.25], np.float32)
        negative = [Sample(cls(to), (x,)) for to in sorted(SIGNED | BOOLS, key=str)]
        small = np.array([0.0, 0.5, 1.0, 2.75, 100.0, 127.0])
        pairs = [(source, to) for source in ElementType for to in ElementType if source is not to]
        return [*negative, *(Sample(cls(to), (small.astype(source.dtype),)) for source, to in pairs)]


@operator
class Identity(Elementwise):
    """x. ONNX Identity-16."""

    onnx = "Identity-16"
    operands = UNARY

    def expression(self, *inputs: Expression) -> Expression:
        return inputs[0]

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return unary_samples(cls())


@operator
class Map(Elementwise):
    """A fused region: any scalar expression of `arity` operands. What fusion makes of other elementwise operators."""

    operands = (Operand("x", ALL, variadic=True),)
    body: Expression = Input(ElementType.F32, 0)
    arity: int = 1

    def expression(self, *inputs: Expression) -> Expression:
        for value in scalar.inputs_of(self.body):
            if inputs[value.index].element is not value.element:
                raise TypeError(f"input {value.index} is {inputs[value.index].element}, not {value.element}")
        return self.body

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x, y = Input(ElementType.F32, 0), Input(ElementType.F32, 1)
        body = apply("max", apply("add", x, apply("mul", y, Literal(ElementType.F32, 2.0))), x)
        arrays = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.arange(3, dtype=np.float32).reshape(3, 1)
        return [Sample(cls(body, 2), arrays)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        negation = cls(apply("neg", Input(ElementType.F32, 0)), 1)
        return [ErrorSample(negation, (np.arange(3),), "element types do not go together")]
