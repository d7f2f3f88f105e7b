"""Walks through decision trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowstone.backends.cpu.kernel_family import InnerStride, KernelFamily, KernelKey, OperandKey, emits
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations import TreeSums
from glowstone.scalar.forest import node_words
from glowstone.table import KernelCall

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

LANES = 8
"""Walks that one thread makes at once: a step waits for memory, and others fill the time."""
STEP_NANOSECONDS = 1.5
"""One step of one walk, nodes mostly in the caches."""
LEAST_ROWS, MOST_ROWS = 8 * LANES, 128 * LANES
"""Rows of a unit where there are so many: a tree is read once for all of them."""
WANTED_UNITS = 16
SCRATCH_BYTES = 512 * 1024
"""For the rows of a unit and their sums; at least `LANES` rows are taken whatever they need."""
SUM_BYTES = 8


@emits(TreeSums)
class TreeKernels(KernelFamily):
    """Some rows through the trees of one part: eight rows through a tree at once, what is left eight trees at once."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        y, x, nodes, roots, *_ = instruction.operands
        operation = instruction.operation
        assert isinstance(operation, TreeSums)
        operands = tuple(
            OperandKey(view.element, view.rank, InnerStride.ANY if number == 1 else InnerStride.ONE)
            for number, view in enumerate(instruction.operands)
        )
        key = KernelKey(operation, operands, len(instruction.integers))
        if y.size == 0:
            return KernelCall(key, 0, derived=(1, 1, 1))
        parts, rows, targets = y.shape
        bytes_per_row = x.element.size * x.shape[1] * (2 if operation.nan_low else 1) + SUM_BYTES * targets
        wanted = max(LEAST_ROWS, min(MOST_ROWS, rows // WANTED_UNITS))
        block = max(1, min(wanted, SCRATCH_BYTES // bytes_per_row) // LANES) * LANES
        blocks = -(-rows // block)
        trees = roots.size
        depth = (nodes.size // node_words(x.element) // max(trees, 1)).bit_length() + 1
        cost = int(STEP_NANOSECONDS * rows * trees * depth) + target.cost(0, bytes_per_row * rows * parts)
        derived = (block, blocks, -(-trees // parts))
        return KernelCall(key, parts * blocks, 1, min(block, rows) * bytes_per_row, cost, derived)

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.trees import TreeWalks

        assert isinstance(key.operation, TreeSums)
        TreeWalks(emitter, key.operation).emit()
