"""Results of as many elements as the data say: one unit finds them in order, another pass places them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.counted import (
    DistinctSlices,
    FindNonZero,
    KeepSlices,
    ListSelected,
    SuppressOverlaps,
)
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

FLOPS = 8
"""Of finding and placing one element."""
FLOPS_OF_COMPARISON = 32
FLOPS_OF_OVERLAP = 40
POSITION_BYTES = 8
SLOTS_OF_DISTINCT = 4
"""Positions in scratch for every slice: two orders to merge from and into, the group, its number."""
SLOTS_OF_BOX = 2
"""Positions in scratch for every box: two orders to merge from and into."""
EXPECTED_RIVALS = 16
"""Boxes selected before that one is compared with."""


@emits(FindNonZero, KeepSlices, ListSelected)
class CompactionKernels(KernelFamily):
    """One unit, whose place for an element depends on all before it."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        moved = sum(view.element.size * view.size for view in instruction.operands)
        cost = target.cost(FLOPS * instruction.operands[2].size, moved)
        return KernelCall(KernelKey.of(instruction), 1, cost=cost)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.compaction import emit_compaction

        emit_compaction(emitter, key.operation)


@emits(DistinctSlices)
class DistinctSlicesKernels(KernelFamily):
    """One unit: slices sorted by merging, then numbered. Keyed by whether slices are single elements."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        x = instruction.operands[-1]
        length = x.shape[1]
        compared = FLOPS_OF_COMPARISON * x.size * (1 + length.bit_length())
        cost = target.cost(compared, 2 * x.element.size * x.size)
        is_single = int(x.shape[0] == x.shape[2] == 1)
        scratch = SLOTS_OF_DISTINCT * POSITION_BYTES * length
        return KernelCall(KernelKey.of(instruction, (is_single,)), 1, scratch=scratch, cost=cost)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.distinct import emit_distinct_slices

        assert isinstance(key.operation, DistinctSlices)
        emit_distinct_slices(emitter, key.operation, bool(key.variant[0]))


@emits(SuppressOverlaps)
class SuppressionKernels(KernelFamily):
    """One unit for each class of an image."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        selected, _, boxes = instruction.operands[:3]
        units, count = selected.shape[0], boxes.shape[1]
        flops = (FLOPS_OF_COMPARISON * count.bit_length() + FLOPS_OF_OVERLAP * EXPECTED_RIVALS) * count * units
        cost = target.cost(flops, 4 * 5 * count * units)
        return KernelCall(KernelKey.of(instruction), units, 1, SLOTS_OF_BOX * POSITION_BYTES * count, cost)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.suppression import emit_suppression

        assert isinstance(key.operation, SuppressOverlaps)
        emit_suppression(emitter, key.operation)
