"""Generation rules of this backend's operators, on top of those of `irgen/rules`."""

from __future__ import annotations

import math
from collections import ChainMap
from dataclasses import replace

from glowstone.backends.cpu.operations import (
    BlockedConvolution,
    DepthwiseConvolution,
    FusedAttention,
    PackedMatMul,
    StemConvolution,
    WinogradConvolution,
)
from glowstone.backends.cpu.ops import BlockedConv, DepthwiseConv, FromBlocked, StemConv, ToBlocked, WinogradConv
from glowstone.backends.cpu.ops import FusedAttention as FusedAttentionOperator
from glowstone.backends.cpu.ops import PackedMatMul as PackedMatMulOperator
from glowstone.backends.cpu.ops.convolution import PackedConvolution
from glowstone.irgen import RULES, Application, Generator, RuleTable
from glowstone.lir import Copy, Fill, Operation, View
from glowstone.types import CHANNEL_AXIS

FEWEST_PANEL_BLOCKS = 4
"""Blocks of output channels for which a copy of the pixels that a strided kernel reads is worth it."""


def generate_convolution(generator: Generator, application: Application) -> None:
    """All packed convolutions have the same operands and integers."""
    operator = application.operator
    assert isinstance(operator, PackedConvolution)
    x, w = application.operand(0), application.operand(1)
    top, left, *_ = operator.window.resolved_pads(x.shape[2:])
    extras = generator.extra_views(application)
    out = generator.result(application.result)
    operation = _operation(operator, application)
    source = generator.view(x)
    if isinstance(operation, BlockedConvolution) and _skips_pixels(operation, generator.view(w), top, left):
        # the kernel takes no such view, so the pixels are copied: lines of the cache half full cost it more
        places = (*source.shape[:2], *out.shape[2:4], source.shape[4])
        source = source.slice((0,) * source.rank, places, (1, 1, *operation.strides, 1))
        operation = replace(operation, strides=(1, 1))
    integers = (top, left, operator.channels)
    generator.emit(operation, out, source, generator.view(w), *extras, integers=integers)


def _skips_pixels(operation: BlockedConvolution, w: View, top: int, left: int) -> bool:
    """Whether a 1 x 1 kernel with a stride reads some pixels only, each for many output channels."""
    is_point = w.shape[2:4] == (1, 1) and (top, left) == (0, 0) and operation.groups == 1
    return is_point and operation.strides != (1, 1) and math.prod(w.shape[::5]) >= FEWEST_PANEL_BLOCKS


def _operation(operator: PackedConvolution, application: Application) -> Operation:
    strides, dilations, kernel, epilogue = operator.strides, operator.dilations, operator.kernel, application.epilogue
    if isinstance(operator, BlockedConv):
        return BlockedConvolution(strides, dilations, operator.groups, operator.tile, epilogue)
    if isinstance(operator, WinogradConv):
        return WinogradConvolution(operator.tile, epilogue)
    if isinstance(operator, StemConv):
        return StemConvolution(strides, dilations, kernel, operator.inputs, operator.tile, epilogue)
    assert isinstance(operator, DepthwiseConv)
    return DepthwiseConvolution(strides, dilations, kernel, epilogue)


def generate_packed_matmul(generator: Generator, application: Application) -> None:
    """Leading axes of a are rows."""
    operator = application.operator
    assert isinstance(operator, PackedMatMulOperator)
    a = application.operand(0)
    rows = math.prod(a.shape[:-1])
    shape = (rows, operator.columns)
    out = generator.result(application.result).reshape(shape)
    assert out is not None, "a fresh buffer is contiguous"
    source = generator.reshaped(generator.view(a), (rows, a.shape[-1]))
    extras = [generator.reshaped(view, shape) for view in generator.extra_views(application)]
    weights = generator.view(application.operand(1))
    generator.emit(PackedMatMul(application.epilogue), out, source, weights, *extras)


def generate_attention(generator: Generator, application: Application) -> None:
    """Factors and extras broadcast to the batches of the scores."""
    operator = application.operator
    assert isinstance(operator, FusedAttentionOperator)
    operands = [generator.view(application.operand(index)) for index in range(len(application.operands))]
    q, k, v, *extras = operands
    out = generator.result(application.result)
    batch, queries, keys = out.shape[:-2], q.shape[-2], k.shape[-1]
    factors = [view.broadcast((*batch, *view.shape[-2:])) for view in (q, k, v)]
    wide_extras = [view.broadcast((*batch, queries, keys)) for view in extras]
    generator.emit(FusedAttention(operator.scores), out, *factors, *wide_extras)


def generate_to_blocked(generator: Generator, application: Application) -> None:
    """Whole blocks in one copy, the last partial block in another, its padding filled with zeros before."""
    x, result = application.operand(0), application.result
    source, out = generator.view(x), generator.result(result)
    for channels, target in _block_parts(out, result.shape[CHANNEL_AXIS]):
        first, count = channels
        part = source.slice((0, first, 0, 0), (source.shape[0], count, *source.shape[2:]))
        if count < target.shape[-1]:
            generator.emit(Fill(0), target)
            target = target.slice((0,) * target.rank, (*target.shape[:-1], count))
        if target.size:
            generator.emit(Copy(), target, _split_channels(part, target))


def generate_from_blocked(generator: Generator, application: Application) -> None:
    """The reverse of `generate_to_blocked`, padding lanes left behind."""
    x, result = application.operand(0), application.result
    source, out = generator.view(x), generator.result(result)
    for channels, blocked in _block_parts(source, result.shape[CHANNEL_AXIS]):
        first, count = channels
        part = out.slice((0, first, 0, 0), (out.shape[0], count, *out.shape[2:]))
        blocked = blocked.slice((0,) * blocked.rank, (*blocked.shape[:-1], min(count, blocked.shape[-1])))
        if blocked.size:
            generator.emit(Copy(), _split_channels(part, blocked), blocked)


def _block_parts(blocked: View, channels: int) -> list[tuple[tuple[int, int], View]]:
    """(first channel, number of channels) and the blocks that hold them: whole blocks, then the partial one."""
    batch, _, *spatial, lanes = blocked.shape
    whole = channels // lanes
    parts = []
    if whole:
        parts.append(((0, whole * lanes), blocked.slice((0,) * blocked.rank, (batch, whole, *spatial, lanes))))
    if channels % lanes:
        start = (0, whole, *[0] * (len(spatial) + 1))
        parts.append(((whole * lanes, channels % lanes), blocked.slice(start, (batch, 1, *spatial, lanes))))
    return parts


def _split_channels(plain: View, blocked: View) -> View:
    """A plain [N, C, H, W] part seen as the blocked [N, blocks, H, W, lanes] view it goes to or comes from."""
    batch, block, row, column = plain.strides
    lanes = blocked.shape[-1]
    return View(plain.buffer, plain.offset, blocked.shape, (batch, block * lanes, row, column, block))


_OWN_RULES: RuleTable = {
    PackedConvolution: generate_convolution,
    PackedMatMulOperator: generate_packed_matmul,
    FusedAttentionOperator: generate_attention,
    ToBlocked: generate_to_blocked,
    FromBlocked: generate_from_blocked,
}

CPU_RULES: RuleTable = ChainMap(dict(_OWN_RULES), RULES)
"""Its own rules, then those that hold for every backend, later ones included."""
