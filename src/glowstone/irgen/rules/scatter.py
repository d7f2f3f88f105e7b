"""Reads and writes at places that data names; axes that the indices share with x are made one where they can be."""

from __future__ import annotations

import math

import numpy as np

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Copy, Elementwise, View
from glowstone.lir.operations.scatter import GatherElements as GatherElementsOperation
from glowstone.lir.operations.scatter import GatherND as GatherNDOperation
from glowstone.lir.operations.scatter import ScatterElements as ScatterElementsOperation
from glowstone.lir.operations.scatter import ScatterND as ScatterNDOperation
from glowstone.lir.operations.scatter import off_axis
from glowstone.ops import GatherElements, GatherND, OneHot, ScatterElements, ScatterND
from glowstone.ops.one_hot import known_depth
from glowstone.scalar import Expression, Input, Literal, apply, cast
from glowstone.types import ElementType, normalize_axis

OUTER_AXIS_INNER = 1
"""The axis of views [outer, axis, inner]."""


@generates(GatherElements)
def generate_gather_elements(generator: Generator, application: Application) -> None:
    operator, result = application.operator, application.result
    assert isinstance(operator, GatherElements)
    x, indices = (generator.view(application.operand(index)) for index in (0, 1))
    axis = normalize_axis(operator.axis, x.rank)
    out = generator.result(result)
    if out.size == 0:
        return
    views = [out, x, indices]
    if off_axis(x.shape, axis) == off_axis(indices.shape, axis):
        views = [_around_axis(generator, view, axis) for view in views]
        axis = OUTER_AXIS_INNER
    else:
        shape = tuple(extent if place == axis else out.shape[place] for place, extent in enumerate(x.shape))
        views[1] = x.slice((0,) * x.rank, shape)
    generator.emit(GatherElementsOperation(axis), *views)


def _around_axis(generator: Generator, view: View, axis: int) -> View:
    """[outer, axis, inner]."""
    outer, inner = math.prod(view.shape[:axis]), math.prod(view.shape[axis + 1 :])
    return generator.reshaped(view, (outer, view.shape[axis], inner))


@generates(GatherND)
def generate_gather_nd(generator: Generator, application: Application) -> None:
    operator, result = application.operator, application.result
    assert isinstance(operator, GatherND)
    x, indices = (generator.view(application.operand(index)) for index in (0, 1))
    batch, depth = operator.batch_axes, indices.shape[-1]
    size = math.prod(x.shape[:batch])
    picks, length = math.prod(indices.shape[batch:-1]), math.prod(x.shape[batch + depth :])
    out = generator.result(result).reshape((size, picks, length))
    assert out is not None
    if out.size == 0:
        return
    source = generator.reshaped(x, (size, *x.shape[batch : batch + depth], length))
    generator.emit(GatherNDOperation(), out, source, generator.reshaped(indices, (size, picks, depth)))


@generates(ScatterElements)
def generate_scatter_elements(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, ScatterElements)
    x, indices, updates = (generator.view(application.operand(index)) for index in range(3))
    axis = normalize_axis(operator.axis, x.rank)
    out = generator.result(application.result)
    if out.size:
        generator.emit(Copy(), out, x)
    if indices.size == 0:
        return
    views = [out, indices, updates]
    if off_axis(x.shape, axis) == off_axis(indices.shape, axis):
        views = [_around_axis(generator, view, axis) for view in views]
        axis = OUTER_AXIS_INNER
    generator.emit(ScatterElementsOperation(axis, operator.reduction), *views)


@generates(ScatterND)
def generate_scatter_nd(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, ScatterND)
    x, indices, updates = (generator.view(application.operand(index)) for index in range(3))
    out = generator.result(application.result)
    if out.size:
        generator.emit(Copy(), out, x)
    if updates.size == 0:
        return
    depth = indices.shape[-1]
    rows, length = math.prod(indices.shape[:-1]), math.prod(x.shape[depth:])
    target = out.reshape((*x.shape[:depth], length))
    assert target is not None
    flat = generator.reshaped(indices, (rows, depth))
    generator.emit(ScatterNDOperation(operator.reduction), target, flat, generator.reshaped(updates, (rows, length)))


@generates(OneHot)
def generate_one_hot(generator: Generator, application: Application) -> None:
    """A choice between two elements, by comparison of the index with the position."""
    operator, result = application.operator, application.result
    assert isinstance(operator, OneHot)
    indices, values = application.operand(0), generator.view(application.operand(2))
    axis = normalize_axis(operator.axis, result.rank)
    depth = known_depth(application.operand(1))
    source = generator.view(indices)
    wide = generator.reshaped(source, (*source.shape[:axis], 1, *source.shape[axis:]))
    places = generator.reshaped(generator.numbers(depth), (depth, *[1] * (result.rank - axis - 1)))
    limit = generator.plan_constant(np.full(1, depth, np.int64))
    off, on = (values.slice((index,), (1,)) for index in (0, 1))
    operation = Elementwise((_one_hot_expression(indices.element, result.element),), 5)
    views = (view.broadcast(result.shape) for view in (wide, places, limit, off, on))
    generator.emit(operation, generator.result(result), *views)


def _one_hot_expression(indices: ElementType, values: ElementType) -> Expression:
    """Of the index, the position, the depth, the off and the on value."""
    given = cast(Input(indices, 0), ElementType.I64)
    position, depth = (Input(ElementType.I64, number) for number in (1, 2))
    index = apply("select", apply("less", given, Literal(ElementType.I64, 0)), apply("add", given, depth), given)
    return apply("select", apply("equal", index, position), Input(values, 4), Input(values, 3))
