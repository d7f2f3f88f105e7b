"""Positions of extrema, the largest so many, and running sums as [outer, R, inner]."""

from __future__ import annotations

import math

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import ArgReduce, View
from glowstone.lir import Cumulative as CumulativeOperation
from glowstone.lir import TopK as TopKOperation
from glowstone.ops import ArgExtremum, Cumulative, TopK
from glowstone.types import normalize_axis


def split_at(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """[outer, R, inner] around an axis."""
    axis = normalize_axis(axis, len(shape))
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _flat(view: View, shape: tuple[int, ...]) -> View:
    flat = view.reshape(shape)
    assert flat is not None, "a fresh buffer is contiguous"
    return flat


@generates(ArgExtremum)
def generate_arg_extremum(generator: Generator, application: Application) -> None:
    operator, x = application.operator, application.operand(0)
    assert isinstance(operator, ArgExtremum)
    outer, length, inner = split_at(x.shape, operator.axis)
    source = generator.reshaped(generator.view(x), (outer, length, inner))
    out = _flat(generator.result(application.result), (outer, inner))
    generator.emit(ArgReduce(operator.mode, operator.last), out, source)


@generates(TopK)
def generate_top_k(generator: Generator, application: Application) -> None:
    operator, x = application.operator, application.operand(0)
    assert isinstance(operator, TopK)
    source = generator.reshaped(generator.view(x), split_at(x.shape, operator.axis))
    sizes = split_at(application.node.results[0].shape, operator.axis)
    results = [_flat(generator.result(value), sizes) for value in application.node.results]
    generator.emit(TopKOperation(operator.largest), *results, source)


@generates(Cumulative)
def generate_cumulative(generator: Generator, application: Application) -> None:
    operator, x = application.operator, application.operand(0)
    assert isinstance(operator, Cumulative)
    sizes = split_at(x.shape, operator.axis)
    operation = CumulativeOperation(operator.mode, operator.exclusive, operator.reverse)
    source = generator.reshaped(generator.view(x), sizes)
    generator.emit(operation, _flat(generator.result(application.result), sizes), source)
