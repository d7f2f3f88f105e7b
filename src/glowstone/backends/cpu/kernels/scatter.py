"""Kernels that read and write single elements, or rows, at places that data names.

Keyed by element size where they only move, else by element type.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import InnerStride, KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.loop_nest import by_size, column_division, row_division
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.scatter import GatherElements, GatherND, ScatterElements, ScatterND, off_axis
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS_PER_INDEX = 30
"""Checking an index and finding its element take about as long as this much arithmetic."""
FLOPS_PER_ROW = 200


def _key(instruction: Instruction, *moved: int, inner: InnerStride | None = None) -> KernelKey:
    """The key in which the operands `moved` count by size alone; inner strides are `inner` or, for None, their own."""
    operands = tuple(
        OperandKey(by_size(view.element) if number in moved else view.element, view.rank, inner or InnerStride.of(view))
        for number, view in enumerate(instruction.operands)
    )
    return KernelKey(instruction.operation, operands, len(instruction.integers))


@emits(GatherElements)
class GatherElementsKernels(KernelFamily):
    """Rows of y."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y = instruction.operands[0]
        key = _key(instruction, 0, 1)
        if y.size == 0:
            return KernelCall(key, 0, derived=(0,))
        cost = target.cost(FLOPS_PER_INDEX * y.size, 3 * y.element.size * y.size)
        units, per_unit = row_division(math.prod(y.shape[:-1]), cost)
        return KernelCall(key, units, 1, 0, cost, (per_unit,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.scatter import emit_gather_elements

        assert isinstance(key.operation, GatherElements)
        emit_gather_elements(emitter, key.operation)


@emits(GatherND)
class GatherNDKernels(KernelFamily):
    """Rows picked by several indices."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y = instruction.operands[0]
        key = _key(instruction, 0, 1, inner=InnerStride.ONE)
        if y.size == 0:
            return KernelCall(key, 0, derived=(0,))
        rows = y.shape[0] * y.shape[1]
        cost = target.cost(FLOPS_PER_ROW * rows, 2 * y.element.size * y.size)
        units, per_unit = row_division(rows, cost)
        return KernelCall(key, units, 1, 0, cost, (per_unit,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.scatter import emit_gather_nd

        emit_gather_nd(emitter)


@emits(ScatterElements)
class ScatterElementsKernels(KernelFamily):
    """Lines along the axis: updates that meet are on one line, and so are taken in order by one unit."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        assert isinstance(instruction.operation, ScatterElements)
        _, indices, updates = instruction.operands
        moved = (0, 2) if instruction.operation.reduction == "none" else ()
        key = _key(instruction, *moved, inner=InnerStride.ANY)
        if indices.size == 0:
            return KernelCall(key, 0, derived=(0,))
        cost = target.cost(FLOPS_PER_INDEX * indices.size, 3 * updates.element.size * indices.size)
        units, per_unit = row_division(math.prod(off_axis(indices.shape, instruction.operation.axis)), cost)
        return KernelCall(key, units, 1, 0, cost, (per_unit,))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.scatter import emit_scatter_elements

        assert isinstance(key.operation, ScatterElements)
        emit_scatter_elements(emitter, key.operation)


@emits(ScatterND)
class ScatterNDKernels(KernelFamily):
    """Columns: a unit takes all updates in order, but only some elements of every row."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        assert isinstance(instruction.operation, ScatterND)
        _, _, updates = instruction.operands
        moved = (0, 2) if instruction.operation.reduction == "none" else ()
        key = _key(instruction, *moved, inner=InnerStride.ONE)
        if updates.size == 0:
            return KernelCall(key, 0, derived=(0, 0))
        rows, columns = updates.shape
        cost = target.cost(FLOPS_PER_ROW * rows, 3 * updates.element.size * updates.size)
        units, grain, per_unit, chunks = column_division(1, columns, cost)
        return KernelCall(key, units, grain, 0, cost, (per_unit, chunks))

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.scatter import emit_scatter_nd

        assert isinstance(key.operation, ScatterND)
        emit_scatter_nd(emitter, key.operation)
