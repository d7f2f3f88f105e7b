"""RandomUniform, RandomNormal, Bernoulli, Multinomial, and Dropout in training.

Where a node names no seed, its name decides: nodes draw numbers of their own, and every run the same.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.tensors import element_type
from glowstone.ops import (
    Cast,
    CumSum,
    Div,
    GreaterOrEqual,
    LessOrEqual,
    Mul,
    NormalNumbers,
    ReduceSum,
    Shape,
    Softmax,
    Sub,
    UniformNumbers,
    Where,
)
from glowstone.ops.constant import constant, scalar
from glowstone.ops.random import SEEDS, Drawn
from glowstone.ops.shape import unsqueeze
from glowstone.ops.shape_arithmetic import extents, joined
from glowstone.ops.widening import computed_element, converted
from glowstone.types import ElementType

Make = Callable[[OnnxNode, int, ElementType], Drawn]


def seed_of(node: OnnxNode) -> int:
    """The seed that a node draws numbers by."""
    given = node.attributes.get("seed")
    if given is None:
        return zlib.crc32(node.name.encode())
    if not isinstance(given, int | float) or not np.isfinite(given):
        raise ModelError("attribute seed is no number", expected="a finite number", found=given)
    return int(given) % SEEDS


def _element(node: OnnxNode, default: ElementType) -> ElementType:
    number = node.optional_integer("dtype")
    return default if number is None else element_type(number, "attribute dtype")


def _uniform(node: OnnxNode, seed: int, element: ElementType) -> Drawn:
    return UniformNumbers(seed, element, node.number("low", 0.0), node.number("high", 1.0))


def _normal(node: OnnxNode, seed: int, element: ElementType) -> Drawn:
    return NormalNumbers(seed, element, node.number("mean", 0.0), node.number("scale", 1.0))


def _import_of_shape(make: Make, node: OnnxNode) -> Value:
    shape = node.integer_list("shape")
    if shape is None:
        raise ModelError("attribute shape is missing")
    operator = make(node, seed_of(node), _element(node, ElementType.F32))
    return node.emit(operator, constant(node.builder, np.array(shape, np.int64)))


def _import_like(make: Make, node: OnnxNode) -> Value:
    x = node.operand(0)
    default = x.element if x.element.is_float else ElementType.F32
    return node.emit(make(node, seed_of(node), _element(node, default)), node.emit(Shape(), x))


for _name, _make in {"RandomUniform": _uniform, "RandomNormal": _normal}.items():
    imports(_name)(functools.partial(_import_of_shape, _make))
    imports(f"{_name}Like")(functools.partial(_import_like, _make))


@imports("Bernoulli", since=15)
def import_bernoulli(node: OnnxNode) -> Value:
    """Ones with the probabilities x: u > 1 - x, and u <= x where x is over one half, as NumPy inverts them."""
    x = node.operand(0)
    chances = converted(node.builder, x, ElementType.F64)
    drawn = node.emit(UniformNumbers(seed_of(node), ElementType.F64), node.emit(Shape(), x))
    one, half = (scalar(node.builder, number, ElementType.F64) for number in (1, 0.5))
    rare = node.emit(LessOrEqual(), chances, half)
    low = node.emit(LessOrEqual(), drawn, chances)
    high = node.emit(GreaterOrEqual(), drawn, node.emit(Sub(), one, chances))
    return node.emit(Cast(_element(node, x.element)), node.emit(Where(), rare, high, low))


@imports("Multinomial")
def import_multinomial(node: OnnxNode) -> Value:
    """Classes by logarithms of their odds x [N, C]: as many sums of probabilities as a number reaches."""
    x = node.operand(0)
    if x.rank != 2 or x.shape[1] < 1:
        raise ModelError("odds of classes are a matrix", expected="[N, C] with C over 0", found=str(x.type))
    builder, count = node.builder, node.integer("sample_size", 1)
    odds = node.emit(Softmax(-1), converted(builder, x, ElementType.F64))
    sums = unsqueeze(builder, node.emit(CumSum(1), odds), (1,))
    drawn = node.emit(UniformNumbers(seed_of(node), ElementType.F64), joined(builder, extents(builder, x, 0, 1), count))
    # the last sum is 1 but for rounding: whatever lies beyond all but that is of the last class
    reached = node.emit(GreaterOrEqual(), unsqueeze(builder, drawn, (2,)), sums)
    last = constant(builder, np.arange(x.shape[1]) < x.shape[1] - 1)
    element = _element(node, ElementType.I32)
    counted = node.emit(Where(), last, node.emit(Cast(element), reached), scalar(builder, 0, element))
    return node.emit(ReduceSum((2,), False), counted)


def dropped(node: OnnxNode, x: Value, ratio: Value) -> tuple[Value, Value]:
    """x with elements left out with a probability and the others scaled up, and where they stay."""
    builder, emit = node.builder, node.emit
    drawn = emit(UniformNumbers(seed_of(node), ElementType.F64), emit(Shape(), x))
    stays = emit(GreaterOrEqual(), drawn, converted(builder, ratio, ElementType.F64))
    element = computed_element(x.element)
    share = emit(Sub(), scalar(builder, 1, element), converted(builder, ratio, element))
    scaled = emit(Mul(), converted(builder, x, element), emit(Div(), scalar(builder, 1, element), share))
    return converted(builder, emit(Mul(), emit(Cast(element), stays), scaled), x.element), stays
