"""Copy kernels: contiguous runs, broadcasts, transposes, layout changes. Keyed by element size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.loop_nest import LEAST_RANK, SMALL, LoopNest, WorkDivision
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import Copy
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

ALONG_ROWS, TRANSPOSING = "rows", "transposing"
LEAST_TRANSPOSED_ROWS = 64
FEW_ROWS = 4
"""With so many or fewer, the axis before makes better rows."""
SHORTEST_LOOP = 8
"""A shorter inner axis is compiled in where there is much to copy: it may be symbolic, and each extent is a kernel."""
OUT, IN = range(2)


@emits(Copy)
class CopyKernels(KernelFamily):
    """Along rows of the target; transposing where elements lie side by side along another axis of the source."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        nest = LoopNest.of(instruction.operands)
        rows = _contiguous_source_axis(nest)
        form, least_rows = ALONG_ROWS, 1
        if rows is not None:
            nest, form, least_rows = nest.with_rows(rows), TRANSPOSING, LEAST_TRANSPOSED_ROWS
        elif nest.rank > LEAST_RANK and nest.extents[-2] <= FEW_ROWS < nest.extents[-3]:
            nest = nest.with_rows(nest.rank - 3)
        moved = sum(view.element.size for view in instruction.operands)
        division = WorkDivision.of(nest, target, 1, moved, least_rows)
        shortest = SHORTEST_LOOP if form == ALONG_ROWS and nest.size > SMALL else 0
        key = nest.key(instruction, target, form, only_size=True, shortest_loop=shortest)
        cost = target.cost(nest.size, moved * nest.size)
        return KernelCall(key, division.units, division.grain, 0, cost, division.derived)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.copy import emit_copy, emit_transposing_copy

        (emit_transposing_copy if key.variant[-1] == TRANSPOSING else emit_copy)(emitter)


def _contiguous_source_axis(nest: LoopNest) -> int | None:
    """The axis along which a transposing copy reads, or None where rows of the target are best copied as they are."""
    if nest.strides[OUT][-1] != 1 or nest.strides[IN][-1] in (0, 1):
        return None
    axes = [axis for axis in range(nest.rank - 1) if nest.strides[IN][axis] == 1 and nest.extents[axis] > 1]
    return axes[0] if axes else None
