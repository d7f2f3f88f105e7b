"""Rearrangements: views where strides allow, copies elsewhere."""

from __future__ import annotations

import math

import numpy as np

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Copy, Gather, View
from glowstone.ops import Concat, ConstantOfShape, Expand, Identity, Iota, ReshapeLike, Slice, Transpose
from glowstone.types import CHANNEL_AXIS, TensorType, normalize_axis


@generates(ReshapeLike)
def generate_reshape(generator: Generator, application: Application) -> None:
    view = generator.view(application.operand(0))
    generator.bind(application.result, generator.reshaped(view, application.result.shape))


@generates(Identity)
def generate_identity(generator: Generator, application: Application) -> None:
    generator.bind(application.result, generator.view(application.operand(0)))


@generates(Expand)
def generate_expand(generator: Generator, application: Application) -> None:
    view = generator.view(application.operand(0))
    generator.bind(application.result, view.broadcast(application.result.shape))


@generates(ConstantOfShape)
def generate_constant_of_shape(generator: Generator, application: Application) -> None:
    """One element, stretched: too many elements for the host to know it as a whole."""
    operator = application.operator
    assert isinstance(operator, ConstantOfShape)
    one = generator.plan_constant(np.full((1,), operator.value, operator.element.dtype))
    generator.bind(application.result, one.broadcast(application.result.shape))


@generates(Iota)
def generate_iota(generator: Generator, application: Application) -> None:
    """Numbers too many for the host to pass about; they follow from the shape."""
    shape = application.result.shape
    generator.bind(application.result, generator.reshaped(generator.numbers(math.prod(shape)), shape))


@generates(Transpose)
def generate_transpose(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, Transpose)
    source = generator.view(application.operand(0)).transpose(operator.permutation)
    generator.emit(Copy(), generator.result(application.result), source)


@generates(Concat)
def generate_concat(generator: Generator, application: Application) -> None:
    """Copies into parts of the result; copy elimination lets producers write there directly."""
    operator, result = application.operator, application.result
    assert isinstance(operator, Concat)
    axis = normalize_axis(operator.axis, result.rank)
    block = result.type.channel_block
    out = generator.result(result)
    position = 0
    for operand in application.operands:
        assert operand is not None
        source = generator.view(operand)
        extent = source.shape[axis]
        starts = tuple(position if place == axis else 0 for place in range(out.rank))
        position += operand.shape[axis] // block if block and axis == CHANNEL_AXIS else extent
        if source.size:
            generator.emit(Copy(), out.slice(starts, source.shape), source)


@generates(Slice)
def generate_slice(generator: Generator, application: Application) -> None:
    """A strided view; an axis that runs backwards is gathered."""
    operator = application.operator
    assert isinstance(operator, Slice)
    view = generator.view(application.operand(0))
    ranges = operator.known_ranges(*application.operands)
    starts = tuple(kept.start if kept.step > 0 and len(kept) else 0 for kept in ranges)
    steps = tuple(max(kept.step, 1) for kept in ranges)
    shape = tuple(len(kept) if kept.step > 0 else extent for kept, extent in zip(ranges, view.shape, strict=True))
    view = view.slice(starts, shape, steps)
    for axis, kept in enumerate(ranges):
        if kept.step < 0:
            view = _gathered(generator, view, axis, kept)
    generator.bind(application.result, view)


def _gathered(generator: Generator, view: View, axis: int, kept: range) -> View:
    outer, extent, inner = (int(np.prod(view.shape[:axis])), view.shape[axis], int(np.prod(view.shape[axis + 1 :])))
    shape = (*view.shape[:axis], len(kept), *view.shape[axis + 1 :])
    source = generator.reshaped(view, (outer, extent, inner))
    out = generator.new(TensorType(view.element, shape))
    flat = out.reshape((outer, len(kept), inner))
    assert flat is not None
    if out.size:
        generator.emit(Gather(), flat, source, generator.plan_constant(np.array(kept, np.int64)))
    return out
