"""Reductions, Softmax and LayerNormalization as [outer, R, inner]."""

from __future__ import annotations

import math

import numpy as np

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import LayerNorm, Reduce, View
from glowstone.lir import Softmax as SoftmaxOperation
from glowstone.ops import LayerNormalization, Reduction, Softmax
from glowstone.types import CHANNEL_AXIS, normalize_axis


@generates(Reduction)
def generate_reduction(generator: Generator, application: Application) -> None:
    """Neighbouring axes of the physical shape; over no axes every element is its own sum."""
    operator, result = application.operator, application.result
    assert isinstance(operator, Reduction)
    x = application.operand(0)
    view = generator.view(x)
    axes = operator.normal_axes(x.rank)
    first, last = (axes[0], axes[-1] + 1) if axes else (x.rank, x.rank)
    assert x.type.channel_block is None or first > CHANNEL_AXIS, "channels inside blocks are not reduced"
    sizes = (math.prod(view.shape[:first]), math.prod(view.shape[first:last]), math.prod(view.shape[last:]))
    out = generator.result(result)
    extras = [generator.reshaped(extra, (sizes[0], sizes[2])) for extra in generator.extra_views(application)]
    flat = out.reshape((sizes[0], sizes[2]))
    assert flat is not None
    generator.emit(Reduce(operator.mode, application.epilogue), flat, generator.reshaped(view, sizes), *extras)


@generates(Softmax)
def generate_softmax(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, Softmax)
    x = application.operand(0)
    axis = normalize_axis(operator.axis, x.rank)
    sizes = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    source = generator.reshaped(generator.view(x), sizes)
    generator.emit(SoftmaxOperation(), _flat(generator.result(application.result), sizes), source)


@generates(LayerNormalization)
def generate_layer_normalization(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, LayerNormalization)
    x = application.operand(0)
    axis = normalize_axis(operator.axis, x.rank)
    sizes = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    source = generator.reshaped(generator.view(x), sizes)
    scale = generator.reshaped(generator.view(application.operand(1)), sizes[1:]).broadcast(sizes)
    if len(application.operands) > 2:
        bias = generator.reshaped(generator.view(application.operand(2)), sizes[1:]).broadcast(sizes)
    else:
        bias = generator.plan_constant(np.zeros(1, x.element.dtype)).broadcast(sizes)
    out = _flat(generator.result(application.result), sizes)
    generator.emit(LayerNorm(operator.epsilon), out, source, scale, bias)


def _flat(view: View, shape: tuple[int, ...]) -> View:
    flat = view.reshape(shape)
    assert flat is not None, "a fresh buffer is contiguous"
    return flat
