"""Lets a depthwise convolution and the pointwise one that reads it take turns, some rows of the image at a time.

What lies between them then needs memory for those rows only, and stays in the cache on its way from one to the other.
Worth it where the whole of it would not. On the low-level program: rows of an image are slices of views.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from glowstone.backends.cpu.operations import BlockedConvolution, DepthwiseConvolution
from glowstone.backends.cpu.target import Target
from glowstone.lir import Buffer, BufferKind, Instruction, Program, View
from glowstone.lir.lifetimes import place_lifetimes

ROWS_AXIS = 2
"""Of data [N, blocks, H, W, lanes]."""
Y, X, W, FIRST_EXTRA = range(4)
LEAST_CACHES = 8
"""Times the size of the second-level cache: from there on a last-level cache, which others use too, does not help."""
BAND_CACHES = 2
"""Likewise, of the rows between the two in one band: smaller ones cost more barriers than they save."""


@dataclass(frozen=True)
class InterleaveConvolutions:
    """The pass for one target."""

    target: Target

    @property
    def __name__(self) -> str:
        return "interleave_convolutions"

    def __call__(self, program: Program) -> bool:
        """Replace pairs of neighbours by pairs for bands of rows; returns whether there were any."""
        instructions = list(program.instructions())
        uses: dict[Buffer, int] = {}
        for instruction in instructions:
            for view in instruction.operands:
                uses[view.buffer] = uses.get(view.buffer, 0) + 1
        made: list[Instruction] = []
        for instruction in instructions:
            pair = _Pair.of(made[-1], instruction) if made else None
            if pair is not None and uses[pair.between.buffer] == len(pair.views_between):
                bands = pair.bands(self.target)
                made[-1:] = bands or [pair.depthwise, pair.pointwise]
            else:
                made.append(instruction)
        if made == instructions:
            return False
        program.body[:] = made
        place_lifetimes(program)
        return True


@dataclass(frozen=True)
class _Pair:
    """A depthwise convolution and the pointwise one that reads its result, which nothing else does."""

    depthwise: Instruction
    pointwise: Instruction

    @staticmethod
    def of(first: Instruction, second: Instruction) -> _Pair | None:
        """The two, if they are such a pair whose rows can be taken apart."""
        if not isinstance(first.operation, DepthwiseConvolution) or not _is_pointwise(second):
            return None
        pair = _Pair(first, second)
        between = pair.between
        is_own = between.buffer.kind is BufferKind.ACTIVATION and between == between.buffer.view()
        if not is_own or second.operands[X] != between or any(view.size == 0 for view in first.operands):
            return None
        result = second.operands[Y]
        others = [*first.operands[X:], *second.operands[W:]]
        is_apart = all(view.buffer is not result.buffer for view in others)
        fits = all(
            extra.shape == instruction.operands[Y].shape
            for instruction in (first, second)
            for extra in instruction.operands[FIRST_EXTRA:]
        )
        return pair if is_apart and fits and between.shape[ROWS_AXIS] == result.shape[ROWS_AXIS] else None

    @property
    def between(self) -> View:
        return self.depthwise.operands[Y]

    @property
    def views_between(self) -> list[View]:
        """Of all operands of both, those of the buffer between them."""
        operands = [*self.depthwise.operands, *self.pointwise.operands]
        return [view for view in operands if view.buffer is self.between.buffer]

    def bands(self, target: Target) -> list[Instruction]:
        """Both for one band of rows after another; empty where that does not pay."""
        rows, size = self.between.shape[ROWS_AXIS], self.between.buffer.bytes
        if size < LEAST_CACHES * target.l2_bytes:
            return []
        count = min(rows, math.ceil(size / (BAND_CACHES * target.l2_bytes)))
        ends = [rows * number // count for number in range(count + 1)]
        made: list[Instruction] = []
        for number, (first, end) in enumerate(itertools.pairwise(ends)):
            made += self._band(number, first, end)
        return made

    def _band(self, number: int, first: int, end: int) -> tuple[Instruction, Instruction]:
        """Both for the rows from `first` to before `end`."""
        whole = self.between
        shape = (*whole.shape[:ROWS_AXIS], end - first, *whole.shape[ROWS_AXIS + 1 :])
        buffer = replace(whole.buffer, name=f"{whole.buffer.name}.{number}", shape=shape)
        between = buffer.view()
        source, pad_top = self._source(first, end)
        weights, *extras = self.depthwise.operands[W:]
        depthwise = replace(
            self.depthwise,
            operands=(between, source, weights, *(_rows(extra, first, end) for extra in extras)),
            integers=(pad_top, *self.depthwise.integers[1:]),
        )
        weights, *extras = self.pointwise.operands[W:]
        result = _rows(self.pointwise.operands[Y], first, end)
        pointwise = replace(
            self.pointwise, operands=(result, between, weights, *(_rows(extra, first, end) for extra in extras))
        )
        return depthwise, pointwise

    def _source(self, first: int, end: int) -> tuple[View, int]:
        """The rows of x that a band's windows reach, and how many rows the first one reaches above them."""
        operation = self.depthwise.operation
        assert isinstance(operation, DepthwiseConvolution)
        x, stride = self.depthwise.operands[X], operation.strides[0]
        above = first * stride - self.depthwise.integers[0]
        below = (end - 1) * stride - self.depthwise.integers[0] + (operation.kernel[0] - 1) * operation.dilations[0] + 1
        low = min(max(above, 0), x.shape[ROWS_AXIS] - 1)
        high = max(min(below, x.shape[ROWS_AXIS]), low + 1)
        return _rows(x, low, high), low - above


def _is_pointwise(instruction: Instruction) -> bool:
    """Whether every pixel of the result is computed from the same pixel of x."""
    operation = instruction.operation
    if not isinstance(operation, BlockedConvolution) or instruction.operands[W].shape[2:4] != (1, 1):
        return False
    return operation.strides == (1, 1) and operation.groups == 1 and instruction.integers[:2] == (0, 0)


def _rows(view: View, first: int, end: int) -> View:
    starts = tuple(first if axis == ROWS_AXIS else 0 for axis in range(view.rank))
    shape = (*view.shape[:ROWS_AXIS], end - first, *view.shape[ROWS_AXIS + 1 :])
    return view.slice(starts, shape)
