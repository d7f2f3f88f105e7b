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

UNIT_NANOSECONDS = 20_000
"""Aim for the work of one unit: long enough to hide the cost of claiming it, short enough to share out."""
SHORTEST_RUN = 64
"""Chunks of the inner axis are multiples of this, so that only the last has a tail."""
SAMPLE = 4096
"""Elements for which a cost is estimated, so that it is not lost in rounding."""
LEAST_RANK = 2
CHUNK, CHUNKS, ROWS, ROW_GROUPS, FIRST_EXTENT = range(5)
"""Positions in the derived integers; strides follow the extents, operand by operand."""

_BY_SIZE = {1: ElementType.U8, 2: ElementType.U16, 4: ElementType.U32, 8: ElementType.U64}


@dataclass(frozen=True)
class LoopNest:
    """`strides[operand][axis]`, in elements, of axes with these extents; at least `LEAST_RANK` axes."""

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(views: Sequence[View]) -> LoopNest:
        """The nest over the common shape of the views, ordered by the strides of the first."""
        axes = [
            (extent, tuple(view.strides[axis] for view in views))
            for axis, extent in enumerate(views[0].shape)
            if extent != 1
        ]
        axes.sort(key=lambda axis: [-stride for stride in axis[1]])
        merged: list[tuple[int, tuple[int, ...]]] = []
        for extent, strides in axes:
            if merged and all(outer == inner * extent for outer, inner in zip(merged[-1][1], strides, strict=True)):
                merged[-1] = (merged[-1][0] * extent, strides)
            else:
                merged.append((extent, strides))
        if not merged:
            merged = [(1, (1,) * len(views))]
        missing = [(1, (0,) * len(views))] * (LEAST_RANK - len(merged))
        extents, strides_by_axis = zip(*missing, *merged, strict=True)
        return LoopNest(tuple(extents), tuple(zip(*strides_by_axis, strict=True)))

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
    def size(self) -> int:
        return math.prod(self.extents)

    def key(self, instruction: Instruction, *variant: int | str, only_size: bool = False) -> KernelKey:
        """The key of the instruction's kernel: what is compiled in about strides is that of the merged axes.

        With `only_size`, element types of one size share a kernel.
        """
        operands = tuple(
            OperandKey(by_size(view.element) if only_size else view.element, view.rank, inner_class(strides[-1]))
            for view, strides in zip(instruction.operands, self.strides, strict=True)
        )
        return KernelKey(instruction.operation, operands, len(instruction.integers), (self.rank, *variant))


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
            return WorkDivision(0, 1, ())
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
