"""Updates of a cache: places computed from the starts, then a scatter along the axis."""

from __future__ import annotations

import math

import numpy as np

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Copy, Elementwise, ScatterElements, View
from glowstone.ops import TensorScatter
from glowstone.scalar import Expression, Input, apply
from glowstone.types import ElementType, TensorType, normalize_axis

SEQUENCE_AXIS = 2
"""Of views [batch, outer, sequence, inner]."""


@generates(TensorScatter)
def generate_tensor_scatter(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, TensorScatter)
    cache, update = (generator.view(application.operand(number)) for number in (0, 1))
    axis = normalize_axis(operator.axis, cache.rank)
    out = generator.result(application.result)
    if out.size:
        generator.emit(Copy(), out, cache)
    if update.size == 0:
        return
    starts = generator.view(application.operand(2)) if len(application.operands) > 2 else None
    places = _places(generator, operator, starts, (cache.shape[0], update.shape[axis]), cache.shape[axis])
    target, source = (_around_axis(generator, view, axis) for view in (out, update))
    wide = places.reshape((places.shape[0], 1, places.shape[1], 1))
    assert wide is not None
    generator.emit(ScatterElements(SEQUENCE_AXIS), target, wide.broadcast(source.shape), source)


def _around_axis(generator: Generator, view: View, axis: int) -> View:
    outer, inner = math.prod(view.shape[1:axis]), math.prod(view.shape[axis + 1 :])
    return generator.reshaped(view, (view.shape[0], outer, view.shape[axis], inner))


def _places(
    generator: Generator, operator: TensorScatter, starts: View | None, shape: tuple[int, int], extent: int
) -> View:
    """[batch, sequence]: start + number, modulo the extent where circular."""
    steps = generator.numbers(shape[1])
    if starts is None:
        return steps.broadcast(shape)
    limit = generator.plan_constant(np.array([extent], np.int64))
    start, step, count = (Input(ElementType.I64, number) for number in range(3))
    place: Expression = apply("add", start, step)
    if operator.circular:
        place = apply("sub", place, apply("mul", apply("div", place, count), count))
    column = generator.reshaped(starts, (shape[0], 1))
    views = (view.broadcast(shape) for view in (column, steps, limit))
    out = generator.new(TensorType(ElementType.I64, shape))
    generator.emit(Elementwise((place,), 3), out, *views)
    return out
