"""Typed scalar expressions: what a data-parallel computation does to one element.

An expression is an immutable tree of inputs, literals and applied functions. Elementwise operators state their meaning
as one; fusion composes them; every backend emits them; `evaluate` is their meaning in NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glowstone.types import NARROW_FLOATS, ElementType

F32, BOOL = ElementType.F32, ElementType.BOOL
LARGEST_EXACT_INTEGER = 256
"""Every integer up to here is a number of every float type."""


@dataclass(frozen=True)
class Expression:
    """Base of the three kinds of node. `element` is the type of its value."""

    element: ElementType


@dataclass(frozen=True)
class Input(Expression):
    """Element of operand number `index` at the current position."""

    index: int

    def __str__(self) -> str:
        return f"x{self.index}:{self.element}"


@dataclass(frozen=True)
class Literal(Expression):
    """A number. Floats are held as Python floats, integers as int, booleans as bool."""

    value: float | int | bool

    def __post_init__(self) -> None:
        kind = float if self.element.wide.is_float else bool if self.element is BOOL else int
        object.__setattr__(self, "value", kind(self.value))

    def __eq__(self, other: object) -> bool:
        # repr tells 0.0 from -0.0 and makes nan equal to itself
        return isinstance(other, Literal) and (self.element, repr(self.value)) == (other.element, repr(other.value))

    def __hash__(self) -> int:
        return hash((self.element, repr(self.value)))

    def __str__(self) -> str:
        return f"{self.value!r}:{self.element}"


@dataclass(frozen=True)
class Apply(Expression):
    """A function of `FUNCTIONS` applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]

    def __hash__(self) -> int:
        # kept, because kernel keys hash the same tree again and again
        kept: int | None = self.__dict__.get("_hash")
        if kept is None:
            kept = hash((self.element, self.function, self.arguments))
            object.__setattr__(self, "_hash", kept)
        return kept

    def __getstate__(self) -> dict[str, object]:
        # hashes of texts differ between processes
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    def __str__(self) -> str:
        suffix = f":{self.element}" if self.function in CONVERSIONS else ""
        return f"{self.function}({', '.join(map(str, self.arguments))}){suffix}"


@dataclass(frozen=True)
class Function:
    """Signature of a scalar function: number of arguments and how the result type follows from theirs."""

    arity: int
    result: Callable[[Sequence[ElementType]], ElementType]
    doc: str


def _common(elements: Sequence[ElementType]) -> ElementType:
    if len(set(elements)) != 1:
        raise TypeError(f"element types differ: {', '.join(map(str, elements))}")
    return elements[0]


def _same(elements: Sequence[ElementType]) -> ElementType:
    element = _common(elements)
    if element.is_narrow:
        raise TypeError(f"{element} has no arithmetic, unlike {element.wide}")
    return element


def _predicate(elements: Sequence[ElementType]) -> ElementType:
    _same(elements)
    return BOOL


def _choice(elements: Sequence[ElementType]) -> ElementType:
    if elements[0] is not BOOL:
        raise TypeError(f"a condition is bool, not {elements[0]}")
    return _common(elements[1:])


_TRIGONOMETRIC = {
    "sin": "sine",
    "cos": "cosine",
    "tan": "tangent",
    "asin": "arcsine; NaN outside [-1, 1]",
    "acos": "arccosine; NaN outside [-1, 1]",
    "atan": "arctangent",
    "sinh": "hyperbolic sine",
    "cosh": "hyperbolic cosine",
    "asinh": "inverse hyperbolic sine",
    "acosh": "inverse hyperbolic cosine; NaN below 1",
    "atanh": "inverse hyperbolic tangent; NaN outside [-1, 1]",
}

FUNCTIONS: dict[str, Function] = {
    "add": Function(2, _same, "x + y; integers wrap"),
    "sub": Function(2, _same, "x - y; integers wrap"),
    "mul": Function(2, _same, "x * y; integers wrap"),
    "div": Function(2, _same, "x / y; integers truncate toward zero, division by zero gives 0"),
    "pow": Function(2, _same, "x to the power y"),
    "min": Function(2, _same, "the smaller; NaN if either is NaN"),
    "max": Function(2, _same, "the larger; NaN if either is NaN"),
    "rem": Function(2, _same, "x - trunc(x / y) y, exactly; of integers 0 where y is 0"),
    "shift_left": Function(2, _same, "x 2^y, bits lost at the top; 0 where y is not a number of a bit"),
    "shift_right": Function(2, _same, "floor(x / 2^y); only the sign is left where y is not a number of a bit"),
    "neg": Function(1, _same, "-x"),
    "abs": Function(1, _same, "magnitude"),
    "sqrt": Function(1, _same, "square root"),
    "exp": Function(1, _same, "e to the power x"),
    "log": Function(1, _same, "natural logarithm"),
    "tanh": Function(1, _same, "hyperbolic tangent"),
    "sigmoid": Function(1, _same, "1 / (1 + e to the power -x)"),
    "erf": Function(1, _same, "error function"),
    "expm1": Function(1, _same, "e to the power x, less 1, accurate near 0"),
    "log1p": Function(1, _same, "natural logarithm of 1 + x, accurate near 0"),
    **{name: Function(1, _same, doc) for name, doc in _TRIGONOMETRIC.items()},
    "floor": Function(1, _same, "largest integer not above"),
    "ceil": Function(1, _same, "smallest integer not below"),
    "round": Function(1, _same, "nearest integer, halves to even"),
    "less": Function(2, _predicate, "x < y"),
    "less_equal": Function(2, _predicate, "x <= y"),
    "equal": Function(2, _predicate, "x == y"),
    "and": Function(2, _same, "both; bitwise on integers"),
    "or": Function(2, _same, "either; bitwise on integers"),
    "xor": Function(2, _same, "exactly one; bitwise on integers"),
    "not": Function(1, _same, "negation; bitwise on integers"),
    "select": Function(3, _choice, "y where x, else z"),
    "cast": Function(1, _same, "conversion; floats to integers truncate, NaN gives 0, out of range saturates or wraps"),
    "cast_overflowing": Function(1, _same, "conversion to a narrow float; out of range gives infinity or NaN"),
    "reinterpret": Function(1, _same, "the same bits as another type; a bool is 0 or 1, a NaN of 16 bits any NaN"),
}
CASTS = ("cast", "cast_overflowing")
CONVERSIONS = (*CASTS, "reinterpret")
"""Functions whose result type is written behind them."""


def apply(function: str, *arguments: Expression) -> Expression:
    """The checked constructor of `Apply` for all functions but conversions.

    Raises:
        TypeError: the number or the element types of the arguments do not fit the function.
    """
    signature = FUNCTIONS[function]
    if len(arguments) != signature.arity:
        raise TypeError(f"{function} takes {signature.arity} arguments, not {len(arguments)}")
    return Apply(signature.result([argument.element for argument in arguments]), function, arguments)


def cast(argument: Expression, element: ElementType, saturates: bool = True) -> Expression:
    """Conversion to another element type; the argument itself where it has that type already.

    A small integer as a float is a literal again, so that an exponent of 2 is one in every type. Only narrow floats
    can do other than saturate.
    """
    if argument.element is element:
        return argument
    if isinstance(argument, Literal) and element.is_float and _is_small_integer(argument):
        return Literal(element, argument.value)
    return Apply(element, "cast" if saturates or element not in NARROW_FLOATS else "cast_overflowing", (argument,))


def _is_small_integer(literal: Literal) -> bool:
    return not literal.element.wide.is_float and abs(literal.value) <= LARGEST_EXACT_INTEGER


def reinterpret(argument: Expression, element: ElementType) -> Expression:
    """The same bits as another element type.

    Raises:
        TypeError: that has another number of bits.
    """
    if argument.element.bits != element.bits:
        raise TypeError(f"{argument.element} and {element} differ in size")
    return argument if argument.element is element else Apply(element, "reinterpret", (argument,))


def substitute(expression: Expression, inputs: Sequence[Expression]) -> Expression:
    """The expression with input i replaced by `inputs[i]`. Shared subtrees stay shared."""
    done: dict[int, Expression] = {}

    def visit(node: Expression) -> Expression:
        if isinstance(node, Input):
            return inputs[node.index]
        if not isinstance(node, Apply):
            return node
        if id(node) not in done:
            arguments = tuple(visit(argument) for argument in node.arguments)
            made = Apply(node.element, node.function, arguments)
            casts = node.function in CASTS
            done[id(node)] = cast(arguments[0], node.element, node.function == "cast") if casts else made
        return done[id(node)]

    return visit(expression)


@functools.lru_cache(maxsize=4096)
def inputs_of(expression: Expression) -> tuple[Input, ...]:
    """The distinct inputs, in order of index."""
    found: dict[int, Input] = {}
    for node in walk(expression):
        if isinstance(node, Input):
            found[node.index] = node
    return tuple(found[index] for index in sorted(found))


def walk(expression: Expression) -> list[Expression]:
    """Every distinct node, arguments before the functions applied to them."""
    seen: set[int] = set()
    order: list[Expression] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if isinstance(node, Apply):
                stack.extend((argument, False) for argument in reversed(node.arguments))
    return order


def tree_size(expression: Expression) -> int:
    """Number of nodes with shared subtrees written out wherever they occur: it may double with every node."""
    sizes: dict[int, int] = {}
    for node in walk(expression):
        arguments = node.arguments if isinstance(node, Apply) else ()
        sizes[id(node)] = 1 + sum(sizes[id(argument)] for argument in arguments)
    return sizes[id(expression)]
