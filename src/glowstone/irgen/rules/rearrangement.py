"""Moves of blocks: views where strides allow, copies of boxes and gathers along one axis elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Copy, Fill, Gather, GatherElements, View
from glowstone.ops import CenterCropPad, DepthToSpace, Pad, SpaceToDepth, Split, Tile
from glowstone.ops.constant import known_shape
from glowstone.ops.padding import source_indices
from glowstone.ops.rearrangement import IMAGE_RANK
from glowstone.types import TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


@generates(Split)
def generate_split(generator: Generator, application: Application) -> None:
    """Views, one behind the other."""
    operator = application.operator
    assert isinstance(operator, Split)
    view = generator.view(application.operand(0))
    axis = normalize_axis(operator.axis, view.rank)
    position = 0
    for result in application.node.results:
        starts = tuple(position if place == axis else 0 for place in range(view.rank))
        generator.bind(result, view.slice(starts, result.shape))
        position += result.shape[axis]


@generates(Tile)
def generate_tile(generator: Generator, application: Application) -> None:
    """Every axis as (repetition, place), of which x does not depend on the repetition."""
    x, result = application.operand(0), application.result
    repeats = known_shape(application.operand(1), "repeats")
    out = generator.result(result)
    if out.size == 0:
        return
    wide = out.reshape(tuple(extent for pair in zip(repeats, x.shape, strict=True) for extent in pair))
    source = generator.reshaped(generator.view(x), tuple(extent for size in x.shape for extent in (1, size)))
    assert wide is not None
    generator.emit(Copy(), wide, source.broadcast(wide.shape))


@generates(DepthToSpace, SpaceToDepth)
def generate_block_move(generator: Generator, application: Application) -> None:
    """Of channel-blocked data whole blocks of channels move, whose lanes stay last."""
    operator = application.operator
    assert isinstance(operator, DepthToSpace | SpaceToDepth)
    view = generator.view(application.operand(0))
    split, order, _ = operator.shapes(view.shape[:IMAGE_RANK])
    lanes = view.shape[IMAGE_RANK:]
    places = range(len(order), len(order) + len(lanes))
    source = generator.reshaped(view, (*split, *lanes)).transpose((*order, *places))
    out = generator.result(application.result).reshape(source.shape)
    assert out is not None
    generator.emit(Copy(), out, source)


@generates(Pad)
def generate_pad(generator: Generator, application: Application) -> None:
    """Constant borders are copies of one element; other modes are gathers axis by axis."""
    operator, result = application.operator, application.result
    assert isinstance(operator, Pad)
    view = generator.view(application.operand(0))
    before, after = operator.known_margins(*application.operands)
    if operator.mode == "constant":
        value = application.operands[2] if len(application.operands) > 2 else None
        filling = generator.view(value) if value is not None else None
        _emit_padded(generator, generator.result(result), view, before, after, filling)
        return
    for axis, margins in enumerate(zip(before, after, strict=True)):
        if margins != (0, 0):
            indices = source_indices(operator.mode, view.shape[axis], *margins)
            view = gathered_along(generator, view, axis, indices)
    generator.bind(result, view)


@generates(CenterCropPad)
def generate_center_crop_pad(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, CenterCropPad)
    view = generator.view(application.operand(0))
    before, after = operator.margins(view.shape, known_shape(application.operand(1), "shape"))
    _emit_padded(generator, generator.result(application.result), view, before, after, None)


def _emit_padded(
    generator: Generator, out: View, view: View, before: Sequence[int], after: Sequence[int], filling: View | None
) -> None:
    """The box of x that stays, and slabs of one element around it."""
    starts = tuple(max(-first, 0) for first in before)
    sizes = tuple(
        max(extent - start - max(-last, 0), 0) for extent, start, last in zip(view.shape, starts, after, strict=True)
    )
    places = tuple(min(max(first, 0), extent) for first, extent in zip(before, out.shape, strict=True))
    if math.prod(sizes):
        generator.emit(Copy(), out.slice(places, sizes), view.slice(starts, sizes))
    one = generator.reshaped(filling, (1,) * out.rank) if filling is not None else None
    for slab in _slabs(out, places, sizes):
        if one is None:
            generator.emit(Fill(0), slab)
        else:
            generator.emit(Copy(), slab, one.broadcast(slab.shape))


def _slabs(out: View, places: Sequence[int], sizes: Sequence[int]) -> list[View]:
    """What lies outside a box: per axis the part before and behind it, within the box on the axes before."""
    slabs = []
    for axis in range(out.rank):
        end = places[axis] + sizes[axis]
        for first, last in ((0, places[axis]), (end, out.shape[axis])):
            starts = (*places[:axis], first, *(0,) * (out.rank - axis - 1))
            shape = (*sizes[:axis], last - first, *out.shape[axis + 1 :])
            if math.prod(shape):
                slabs.append(out.slice(starts, shape))
    return slabs


def gathered_along(generator: Generator, view: View, axis: int, indices: Array) -> View:
    """The view with its axis read at indices that the host knows, in a fresh buffer."""
    outer, inner = math.prod(view.shape[:axis]), math.prod(view.shape[axis + 1 :])
    out = generator.new(TensorType(view.element, (*view.shape[:axis], len(indices), *view.shape[axis + 1 :])))
    if out.size == 0:
        return out
    table = generator.plan_constant(np.asarray(indices, np.int64))
    if inner == 1:
        lines = out.reshape((outer, len(indices)))
        assert lines is not None, "a fresh buffer is contiguous"
        source = generator.reshaped(view, (outer, view.shape[axis]))
        generator.emit(GatherElements(1, checked=False), lines, source, table.broadcast(lines.shape))
        return out
    rows = out.reshape((outer, len(indices), inner))
    assert rows is not None, "a fresh buffer is contiguous"
    generator.emit(Gather(), rows, generator.reshaped(view, (outer, view.shape[axis], inner)), table)
    return out
