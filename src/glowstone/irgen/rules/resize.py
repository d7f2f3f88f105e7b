"""Resize axis by axis: gathers where every element is one of x's, weighted sums elsewhere."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from glowstone.errors import UnsupportedError
from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.rearrangement import gathered_along
from glowstone.irgen.rules.table import generates
from glowstone.lir import Copy, Elementwise, View
from glowstone.lir.operations.resampling import Resample, weight_type
from glowstone.ops import Resize
from glowstone.ops.resize_tables import Taps
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.types import CHANNEL_AXIS, ElementType, TensorType


@generates(Resize)
def generate_resize(generator: Generator, application: Application) -> None:
    operator, x, result = application.operator, application.operand(0), application.result
    assert isinstance(operator, Resize)
    view = generator.view(x)
    if result.type.size == 0:
        generator.result(result)
        return
    tables = operator.tables(operator.known_axes(*application.operands))
    if x.type.channel_block is not None and not tables[CHANNEL_AXIS].is_identity(x.shape[CHANNEL_AXIS]):
        raise UnsupportedError("channels are resized to an extent that the input decides", operator="Resize")
    repeated = {axis: count for axis, taps in enumerate(tables) if (count := taps.repeats(x.shape[axis])) > 1}
    for axis in _cheapest_order(tables, x.shape):
        if axis not in repeated:
            view = _resampled(generator, view, axis, tables[axis])
    if repeated:
        view = _repeated(generator, view, repeated)
    masks = [taps.outside.reshape(-1, *[1] * (view.rank - axis - 1)) for axis, taps in enumerate(tables)]
    masks = [mask for mask in masks if mask.any()]
    if masks:
        view = _extrapolated(generator, view, masks, operator.extrapolation)
    generator.bind(result, view)


def _cheapest_order(tables: Sequence[Taps], shape: Sequence[int]) -> list[int]:
    """Axes that change: those that shrink first, so that the others have less to do, then inner ones, the slow ones."""
    axes = [axis for axis, taps in enumerate(tables) if not taps.is_identity(shape[axis])]
    return sorted(axes, key=lambda axis: (len(tables[axis].indices) / (1 + tables[axis].indices.max(initial=0)), -axis))


def _repeated(generator: Generator, view: View, counts: Mapping[int, int]) -> View:
    """Every element of some axes so many times, in one copy: such an axis is [places, repetitions] of the result."""
    split, single, product = [], [], []
    for axis, extent in enumerate(view.shape):
        count = counts.get(axis)
        split += [extent] if count is None else [extent, count]
        single += [extent] if count is None else [extent, 1]
        product.append(extent * (count or 1))
    out = generator.new(TensorType(view.element, tuple(product)))
    wide = out.reshape(tuple(split))
    assert wide is not None, "a fresh buffer is contiguous"
    source = generator.reshaped(view, tuple(single))
    generator.emit(Copy(), wide, source.broadcast(wide.shape))
    return out


def _resampled(generator: Generator, view: View, axis: int, taps: Taps) -> View:
    if taps.picks is not None:
        return gathered_along(generator, view, axis, taps.picks)
    outer, inner = math.prod(view.shape[:axis]), math.prod(view.shape[axis + 1 :])
    count = len(taps.indices)
    out = generator.new(TensorType(view.element, (*view.shape[:axis], count, *view.shape[axis + 1 :])))
    flat = out.reshape((1, outer, count, inner))
    assert flat is not None, "a fresh buffer is contiguous"
    source = generator.reshaped(view, (1, outer, view.shape[axis], inner))
    indices = generator.plan_constant(taps.indices[None])
    weights = generator.plan_constant(taps.weights[None].astype(weight_type(view.element).dtype))
    generator.emit(Resample(), flat, source, indices, weights)
    return out


def _extrapolated(generator: Generator, view: View, masks: Sequence[np.ndarray], value: float) -> View:
    """The value where any of the masks holds."""
    out = generator.new(TensorType(view.element, view.shape))
    inputs: list[Expression] = [Input(ElementType.BOOL, 1 + number) for number in range(len(masks))]
    outside = functools.reduce(lambda x, y: apply("or", x, y), inputs)
    chosen = apply("select", outside, Literal(view.element, value), Input(view.element, 0))
    views = (generator.plan_constant(mask).broadcast(view.shape) for mask in masks)
    generator.emit(Elementwise((chosen,), 1 + len(masks)), out, view, *views)
    return out
