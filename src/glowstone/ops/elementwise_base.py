"""Elementwise operators: each states its meaning once, as a scalar expression. The bases of all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from glowstone import scalar
from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import ALL, ANY, BOOLS, FLOATS, HALVES, NUMBERS
from glowstone.ops.elementwise_samples import binary_samples, main_element, unary_samples
from glowstone.scalar import Expression, Input, apply
from glowstone.types import CHANNEL_AXIS, ElementType, Shape, TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]

UNARY = (Operand("x", ANY),)
TWO_NUMBERS = (Operand("x", NUMBERS), Operand("y", NUMBERS))
TWO_BOOLS = (Operand("x", BOOLS), Operand("y", BOOLS))
TWO_OF_ANY = (Operand("x", ALL), Operand("y", ALL))
FLOAT = (Operand("x", FLOATS),)


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
    """Base: two operands of one element type; `function` names the scalar function, `domain` is where samples lie."""

    function: ClassVar[str] = ""
    domain: ClassVar[tuple[float, float]] = (-3.0, 3.0)

    def expression(self, *inputs: Expression) -> Expression:
        return apply(self.function, *inputs)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return binary_samples(cls(), *cls.domain)

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x: Array = np.ones((2, 3), main_element(cls.operands[0].elements or ALL).dtype)
        return [ErrorSample(cls(), (x, x[:, :2]), "broadcast")]


def in_float32(body: Callable[..., Expression], *inputs: Expression) -> Expression:
    """`body` of the inputs; 16-bit floats are computed in float32 and rounded once."""
    element = inputs[0].element
    if element not in HALVES:
        return body(*inputs)
    return scalar.cast(body(*(scalar.cast(value, ElementType.F32) for value in inputs)), element)
