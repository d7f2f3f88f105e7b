"""Sampling at points of a grid, folding of windows, affine grids: tables of places and weights, and sums over them."""

from __future__ import annotations

import math

import numpy as np

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Elementwise, Fill, MatMul, View
from glowstone.lir.operations.resampling import Resample, weight_type
from glowstone.ops import AffineGrid, Col2Im, GridSample
from glowstone.ops.constant import known_shape
from glowstone.ops.sampling import INPUTS_PER_AXIS, GridInterpolation
from glowstone.types import ElementType, TensorType


@generates(GridSample)
def generate_grid_sample(generator: Generator, application: Application) -> None:
    operator, result = application.operator, application.result
    assert isinstance(operator, GridSample)
    x, grid = application.operand(0), application.operand(1)
    out = generator.result(result)
    if out.size == 0:
        return
    interpolation = operator.interpolation(grid.element)
    count = math.prod(grid.shape[1:-1])
    points = generator.reshaped(generator.view(grid), (grid.shape[0], count, grid.shape[-1]))
    places, weights = _grid_tables(generator, interpolation, points, x.type)
    image = generator.reshaped(generator.view(x), (*x.shape[:2], math.prod(x.shape[2:]), 1))
    flat = out.reshape((*x.shape[:2], count, 1))
    assert flat is not None
    generator.emit(Resample(), flat, image, places, weights)


def _grid_tables(
    generator: Generator, interpolation: GridInterpolation, points: View, image: TensorType
) -> tuple[View, View]:
    """Places in the image and weights, [N, points, taps], by the expressions of the interpolation."""
    spatial = image.shape[2:]
    axes = len(spatial)
    weight = weight_type(image.element)
    offsets = interpolation.offsets(axes)
    shape = (*points.shape[:2], offsets.shape[1])
    kind = interpolation.element.dtype
    inputs: list[View] = []
    for axis in range(axes):
        point = points.slice((0, 0, axes - 1 - axis), (*shape[:2], 1))
        stride = np.array([math.prod(spatial[axis + 1 :])], np.int64)
        inputs += [
            point,
            generator.plan_constant(offsets[axis].astype(kind)),
            generator.plan_constant(np.array([spatial[axis]], kind)),
            generator.plan_constant(stride),
        ]
    results = tuple(generator.new(TensorType(element, shape)) for element in (ElementType.I64, weight))
    operation = Elementwise(interpolation.expressions(axes, weight), INPUTS_PER_AXIS * axes)
    generator.emit(operation, *results, *(view.broadcast(shape) for view in inputs))
    return results[0], results[1]


@generates(Col2Im)
def generate_col2im(generator: Generator, application: Application) -> None:
    operator, result = application.operator, application.result
    assert isinstance(operator, Col2Im)
    x = application.operand(0)
    image, block = (known_shape(application.operand(number), "a shape") for number in (1, 2))
    out = generator.result(result)
    if out.size == 0:
        return
    places = operator.places(image, block)
    if x.type.size == 0 or places.shape[1] == 0:
        generator.emit(Fill(0), out)
        return
    source = generator.reshaped(generator.view(x), (*result.shape[:2], math.prod(block) * x.shape[2], 1))
    flat = out.reshape((*result.shape[:2], len(places), 1))
    assert flat is not None
    shape = (x.shape[0], *places.shape)
    indices = generator.plan_constant(places).broadcast(shape)
    weights = generator.plan_constant(np.ones(1, weight_type(x.element).dtype)).broadcast(shape)
    generator.emit(Resample(), flat, source, indices, weights)


@generates(AffineGrid)
def generate_affine_grid(generator: Generator, application: Application) -> None:
    """Points in homogeneous coordinates times the transposed maps."""
    operator, result = application.operator, application.result
    assert isinstance(operator, AffineGrid)
    theta = generator.view(application.operand(0))
    points = operator.points(known_shape(application.operand(1), "size")[2:])
    shape = (theta.shape[0], *points.shape)
    left = generator.plan_constant(points.astype(theta.element.dtype)).broadcast(shape)
    out = generator.result(result).reshape((*shape[:2], theta.shape[1]))
    assert out is not None
    generator.emit(MatMul(), out, left, theta.transpose((0, 2, 1)))
