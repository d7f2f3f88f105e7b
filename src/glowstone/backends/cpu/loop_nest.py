"""Data-parallel loops: axes merged, and work divided into units.

In: views of one shape. Out: a `LoopNest` of as few axes as their strides permit, and the derived integers that tell a
kernel about it. The last axis is the inner one; of the others the last ("rows") is a loop inside a unit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from glowstone.backends.cpu.kernel_family import InnerStride, KernelKey, OperandKey
from glowstone.backends.cpu.target import Target
from glowstone.lir.buffer import View
from glowstone.lir.instruction import Instruction
from glowstone.types import ElementType

UNIT_NANOSECONDS = 10_000
"""Aim for the work of one unit: long enough to hide the cost of claiming it, short enough to share out."""
SHORTEST_RUN = 64
"""Chunks of the inner axis are multiples of this, so that only the last has a tail."""
SAMPLE = 4096
"""Elements for which a cost is estimated, so that it is not lost in rounding."""
SMALL = 1024
"""Elements of which any loop order is fast enough."""
ANY_LENGTH = 0
"""Instead of the extent of the inner axis in a key: it is read at run time."""
LEAST_RANK = 2
CHUNK, CHUNKS, ROWS, ROW_GROUPS, FIRST_EXTENT = range(5)
"""Positions in the derived integers; strides follow the extents, operand by operand."""

_BY_SIZE = {1: ElementType.U8, 2: ElementType.U16, 4: ElementType.U32, 8: ElementType.U64}


@dataclass(frozen=True)
class _Axis:
    """An extent, and the stride of every operand."""

    extent: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class LoopNest:
    """`strides[operand][axis]`, in elements, of axes with these extents; at least `LEAST_RANK` axes."""

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(views: Sequence[View]) -> LoopNest:
        """The nest over the common shape of the views, ordered by the strides of the first.

        It has as many axes as the views, so that the key of a kernel does not depend on how many could be merged.
        """
        shape = views[0].shape
        if views[0].size == 0:
            return _nest(views, [_axis(views, axis) for axis in range(len(shape))])
        axes = [_axis(views, axis) for axis in range(len(shape))]
        nest = _nest(views, _merged([axis for axis in axes if axis.extent != 1]))
        if shape and shape[-1] == 1 and nest.size <= SMALL:
            # here speed matters less than that a symbolic extent which happens to be 1 does not need another kernel
            kept = _nest(views, _merged([axis for axis in axes[:-1] if axis.extent != 1] + axes[-1:]))
            if kept.inner_classes != nest.inner_classes:
                return kept
        return nest

    def with_rows(self, axis: int) -> LoopNest:
        """The nest with an axis moved to the place of the rows."""
        order = [index for index in range(self.rank) if index != axis]
        order.insert(-1, axis)
        return LoopNest(
            tuple(self.extents[index] for index in order),
            tuple(tuple(strides[index] for index in order) for strides in self.strides),
        )

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def inner_classes(self) -> tuple[InnerStride, ...]:
        """What is compiled in about the inner stride of every operand."""
        return tuple(inner_class(strides[-1]) for strides in self.strides)

    @property
    def size(self) -> int:
        return math.prod(self.extents)

    def key(
        self,
        instruction: Instruction,
        target: Target,
        *variant: int | str,
        only_size: bool = False,
        shortest_loop: int = 0,
    ) -> KernelKey:
        """The key of the instruction's kernel: what is compiled in about strides is that of the merged axes.

        An inner axis of one channel block is compiled in too: then there is no tail. So is one shorter than
        `shortest_loop`. With `only_size`, element types of one size share a kernel.
        """
        operands = tuple(
            OperandKey(by_size(view.element) if only_size else view.element, view.rank, inner)
            for view, inner in zip(instruction.operands, self.inner_classes, strict=True)
        )
        is_fixed = self.extents[-1] == target.channel_block or 1 < self.extents[-1] < shortest_loop
        inner = self.extents[-1] if is_fixed else ANY_LENGTH
        return KernelKey(instruction.operation, operands, len(instruction.integers), (self.rank, inner, *variant))


def _axis(views: Sequence[View], axis: int) -> _Axis:
    return _Axis(views[0].shape[axis], tuple(view.strides[axis] for view in views))


def _merged(axes: Sequence[_Axis]) -> list[_Axis]:
    """Axes by falling stride of the first operand, neighbours made one where all operands permit."""
    merged: list[_Axis] = []
    for axis in sorted(axes, key=lambda axis: -axis.strides[0]):
        last = merged[-1] if merged else None
        pairs = zip(last.strides if last else (), axis.strides, strict=False)
        if last and all(outer == inner * axis.extent for outer, inner in pairs):
            merged[-1] = _Axis(last.extent * axis.extent, axis.strides)
        else:
            merged.append(axis)
    return merged


def _nest(views: Sequence[View], axes: Sequence[_Axis]) -> LoopNest:
    """A nest of the axes, filled up in front to the rank of the views."""
    inner = list(axes) or [_Axis(1, (1,) * len(views))]
    missing = max(LEAST_RANK, views[0].rank) - len(inner)
    full = [_Axis(1, (0,) * len(views))] * missing + inner
    strides = zip(*(axis.strides for axis in full), strict=True)
    return LoopNest(tuple(axis.extent for axis in full), tuple(strides))


@dataclass(frozen=True)
class WorkDivision:
    """Units of a nest: for each outer position, groups of rows, for each chunks of the inner axis."""

    units: int
    grain: int
    derived: tuple[int, ...]

    @staticmethod
    def of(nest: LoopNest, target: Target, flops: float, bytes_moved: float, least_rows: int = 1) -> WorkDivision:
        """Units of about `UNIT_NANOSECONDS` each, from the extents alone; `flops` and `bytes_moved` are per element.

        A unit has `least_rows` rows where there are so many.
        """
        if nest.size == 0:
            words = FIRST_EXTENT + nest.rank * (1 + len(nest.strides))
            return WorkDivision(0, 1, (0,) * words)
        per_sample = target.cost(flops * SAMPLE, bytes_moved * SAMPLE)
        wanted = max(SHORTEST_RUN, UNIT_NANOSECONDS * SAMPLE // per_sample)
        *outer, rows, inner = nest.extents
        least_rows = min(least_rows, rows)
        chunk = min(inner, _round_up(-(-wanted // least_rows), SHORTEST_RUN))
        rows_per_unit = max(least_rows, min(rows, wanted // chunk))
        chunks, row_groups = -(-inner // chunk), -(-rows // rows_per_unit)
        units = math.prod(outer) * row_groups * chunks
        grain = max(1, wanted // (rows_per_unit * chunk))
        derived = (chunk, chunks, rows_per_unit, row_groups, *nest.extents, *itertools.chain(*nest.strides))
        return WorkDivision(units, grain, derived)


def row_division(rows: int, cost: int) -> tuple[int, int]:
    """(units, rows per unit) of `rows` equal rows that take `cost` nanoseconds together."""
    if rows == 0:
        return 0, 1
    per_unit = max(1, min(rows, rows * UNIT_NANOSECONDS // cost))
    return -(-rows // per_unit), per_unit


def column_division(outer: int, inner: int, cost: int) -> tuple[int, int, int, int]:
    """(units, grain, columns per unit, units per outer position) of columns that take `cost` nanoseconds together."""
    if outer * inner == 0:
        return 0, 1, 1, 1
    wanted = max(1, outer * inner * UNIT_NANOSECONDS // cost)
    chunk = min(inner, _round_up(wanted, SHORTEST_RUN))
    chunks = -(-inner // chunk)
    return outer * chunks, max(1, wanted // chunk), chunk, chunks


def by_size(element: ElementType) -> ElementType:
    """One element type for all of a size: kernels that only move data share code."""
    return _BY_SIZE[element.size]


def inner_class(stride: int) -> InnerStride:
    """What is compiled in about a stride."""
    return InnerStride(stride) if stride in (0, 1) else InnerStride.ANY


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step
