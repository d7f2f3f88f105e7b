"""Bodies of walks through decision trees: several walks side by side, no branch on data but at the end.

A unit copies its rows into scratch, eight rows interleaved feature by feature, so that a step needs one address for all
of them. Where nodes send NaN low, minus infinity in its place does that, in a second copy in front of the first, which
is where ~f points for feature f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.outer_loops import operand_at
from glowstone.backends.cpu.ir_types import F64, I8, I32, I64, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.kernels.trees import LANES, SUM_BYTES
from glowstone.backends.cpu.math.casts import emit_cast, storage_type
from glowstone.lir.operations.trees import TreeSums
from glowstone.scalar.forest import feature_word
from glowstone.types import ElementType

Y, X, NODES, ROOTS, STARTS, TARGETS, WEIGHTS = range(7)
ROWS_PER_UNIT, ROW_BLOCKS, TREES_PER_PART = range(3)
STEPS = 3
"""Steps between two looks at whether all walks have ended."""


@dataclass(frozen=True)
class _Unit:
    """Rows [first, first + rows), trees [tree, last_tree), and the two parts of scratch."""

    part: Value
    first: Value
    rows: Value
    tree: Value
    last_tree: Value
    sums: Value
    copies: Value


@dataclass(frozen=True)
class _Lane:
    """One walk: where it stands (a word of the nodes), feature 0 of its row, and the elements between features."""

    position: Value
    features: Value
    step: int


class TreeWalks:
    """Emits one kernel."""

    def __init__(self, emitter: Emitter, operation: TreeSums) -> None:
        self.emitter = emitter
        self.operation = operation
        self.element = emitter.key.operands[X].element
        self.kind = storage_type(self.element)
        self.features = emitter.extent(X, 1)
        self.targets = emitter.extent(Y, 2)

    def emit(self) -> None:
        emitter = self.emitter
        with emitter.for_units() as units:
            unit = self._unit(units.index)
            self._clear(unit)
            whole = emitter.mul(emitter.div(unit.rows, LANES), LANES)
            with emitter.for_range(0, whole, LANES) as groups:
                self._copy_rows(unit, groups.index, LANES)
            with emitter.for_range(whole, unit.rows) as rows:
                self._copy_rows(unit, rows.index, 1)
            with emitter.for_range(unit.tree, unit.last_tree) as trees:
                root = self._root(trees.index)
                with emitter.for_range(0, whole, LANES) as groups:
                    self._walk_rows(unit, groups.index, root)
            with emitter.for_range(whole, unit.rows) as rows:
                self._walk_trees(unit, rows.index)
            self._store(unit)

    def _unit(self, number: Value) -> _Unit:
        emitter = self.emitter
        part, block = emitter.divmod(number, emitter.derived(ROW_BLOCKS))
        first = emitter.mul(block, emitter.derived(ROWS_PER_UNIT))
        rows = emitter.minimum(emitter.derived(ROWS_PER_UNIT), emitter.sub(emitter.extent(X, 0), first))
        trees = emitter.extent(ROOTS, 0)
        tree = emitter.mul(part, emitter.derived(TREES_PER_PART))
        last_tree = emitter.minimum(emitter.add(tree, emitter.derived(TREES_PER_PART)), trees)
        sum_bytes = emitter.mul(emitter.mul(rows, self.targets), SUM_BYTES)
        return _Unit(
            part, first, rows, tree, last_tree, emitter.scratch, emitter.offset(emitter.scratch, sum_bytes, I8)
        )

    def _clear(self, unit: _Unit) -> None:
        nothing = 0.0 if self.operation.aggregate == "sum" else math.nan
        with self.emitter.for_range(0, self.emitter.mul(unit.rows, self.targets)) as loop:
            self.emitter.store(F64(nothing), self.emitter.offset(unit.sums, loop.index, F64), SUM_BYTES)

    # Rows in scratch

    def _copy_rows(self, unit: _Unit, row: Value, lanes: int) -> None:
        emitter, builder = self.emitter, self.emitter.builder
        target = self._centre(unit, row, lanes)
        with emitter.for_range(0, self.features) as features:
            for lane in range(lanes):
                number = emitter.add(emitter.add(unit.first, row), lane)
                value = operand_at(emitter, X, 1, InnerStride.ANY, (0, number)).load(features.index, 1)
                self._put(value, target, features.index, lane, lanes)
                if self.operation.nan_low:
                    is_nan = builder.fcmp_unordered("uno", value, value)
                    low = builder.select(is_nan, ir.Constant(self.kind, -math.inf), value)
                    self._put(low, target, emitter.sub(-1, features.index), lane, lanes)

    def _put(self, value: Value, target: Value, feature: Value, lane: int, lanes: int) -> None:
        place = self.emitter.add(self.emitter.mul(feature, lanes), lane)
        self.emitter.store(value, self.emitter.offset(target, place, self.kind), self.element.size)

    def _centre(self, unit: _Unit, row: Value, lanes: int) -> Value:
        """Feature 0 of the group of rows that begins with this one; features sent low when NaN stand before it."""
        emitter = self.emitter
        place = emitter.mul(row, self.features)
        if self.operation.nan_low:
            place = emitter.add(emitter.mul(place, 2), emitter.mul(self.features, lanes))
        return emitter.offset(unit.copies, place, self.kind)

    # Walks

    def _root(self, tree: Value) -> Value:
        address = self.emitter.offset(self.emitter.pointer(ROOTS), tree, I32)
        return self.emitter.builder.zext(self.emitter.load(address, I32, 4), I64)

    def _walk_rows(self, unit: _Unit, row: Value, root: Value) -> None:
        """Eight rows through one tree."""
        emitter = self.emitter
        features = self._centre(unit, row, LANES)
        lanes = [_Lane(root, emitter.offset(features, lane, self.kind), LANES) for lane in range(LANES)]
        for lane, leaf in enumerate(self._leaves(lanes)):
            self._give(unit, emitter.add(row, lane), leaf)

    def _walk_trees(self, unit: _Unit, row: Value) -> None:
        """One row through the trees of the part, eight at once."""
        emitter = self.emitter
        features = self._centre(unit, row, 1)
        count = emitter.sub(unit.last_tree, unit.tree)
        whole = emitter.add(unit.tree, emitter.mul(emitter.div(emitter.maximum(count, 0), LANES), LANES))
        for low, high, step in ((unit.tree, whole, LANES), (whole, unit.last_tree, 1)):
            with emitter.for_range(low, high, step) as trees:
                roots = [self._root(emitter.add(trees.index, lane)) for lane in range(step)]
                for leaf in self._leaves([_Lane(root, features, 1) for root in roots]):
                    self._give(unit, row, leaf)

    def _leaves(self, lanes: Sequence[_Lane]) -> list[Value]:
        """The numbers of the leaves at which the walks end. A leaf leads to itself, so that no walk can go too far."""
        builder = self.emitter.builder
        before = builder.block
        head, after = builder.append_basic_block("walk"), builder.append_basic_block("leaves")
        builder.branch(head)
        builder.position_at_end(head)
        phis = [builder.phi(I64) for _ in lanes]
        for phi, lane in zip(phis, lanes, strict=True):
            phi.add_incoming(lane.position, before)
        positions: list[Value] = list(phis)
        for _ in range(STEPS):
            positions = [self._step(position, lane) for position, lane in zip(positions, lanes, strict=True)]
        for phi, position in zip(phis, positions, strict=True):
            phi.add_incoming(position, builder.block)
        builder.cbranch(self._all_ended(positions), after, head)
        builder.position_at_end(after)
        return [builder.zext(self._word(position, 0), I64) for position in positions]

    def _step(self, position: Value, lane: _Lane) -> Value:
        emitter, builder = self.emitter, self.emitter.builder
        word = feature_word(self.element)
        threshold = emitter.load(self._address(position, 0), self.kind, 4)
        feature = builder.sext(self._word(position, word), I64)
        value = emitter.load(
            emitter.offset(lane.features, emitter.mul(feature, lane.step), self.kind), self.kind, self.element.size
        )
        is_low = builder.fcmp_ordered("<=", value, threshold)
        following = builder.select(is_low, self._word(position, word + 1), self._word(position, word + 2))
        return builder.zext(following, I64)

    def _all_ended(self, positions: Sequence[Value]) -> Value:
        """Whether all stand on leaves: nodes lead forwards, so that the sum of differences is 0 for leaves alone."""
        emitter = self.emitter
        low_word = feature_word(self.element) + 1
        total: Value = I64(0)
        for position in positions:
            following = emitter.builder.zext(self._word(position, low_word), I64)
            total = emitter.add(total, emitter.sub(following, position))
        return emitter.compare(total, "==", 0)

    def _address(self, position: Value, word: int) -> Value:
        return self.emitter.offset(self.emitter.offset(self.emitter.pointer(NODES), position, I32), word, I32)

    def _word(self, position: Value, word: int) -> Value:
        return self.emitter.load(self._address(position, word), I32, 4)

    # Weights

    def _give(self, unit: _Unit, row: Value, leaf: Value) -> None:
        """Add what a leaf gives to the sums of a row."""
        emitter, form = self.emitter, self.operation.form
        sums = emitter.offset(unit.sums, emitter.mul(row, self.targets), F64)
        if form == "single":
            self._join(sums, leaf)
        elif form == "dense":
            first = emitter.mul(leaf, self.targets)
            with emitter.for_range(0, self.targets) as entries:
                self._join(emitter.offset(sums, entries.index, F64), emitter.add(first, entries.index))
        else:
            first, last = (self._entry(STARTS, emitter.add(leaf, end)) for end in range(2))
            with emitter.for_range(first, last) as entries:
                self._join(emitter.offset(sums, self._entry(TARGETS, entries.index), F64), entries.index)

    def _entry(self, operand: int, place: Value) -> Value:
        address = self.emitter.offset(self.emitter.pointer(operand), place, I32)
        return self.emitter.builder.zext(self.emitter.load(address, I32, 4), I64)

    def _join(self, total: Value, entry: Value) -> None:
        emitter, builder = self.emitter, self.emitter.builder
        element = emitter.key.operands[WEIGHTS].element
        address = emitter.offset(emitter.pointer(WEIGHTS), entry, storage_type(element))
        weight = emit_cast(emitter, emitter.load(address, storage_type(element), 4), element, ElementType.F64, 1)
        held = emitter.load(total, F64, SUM_BYTES)
        if self.operation.aggregate == "sum":
            joined = builder.fadd(held, weight)
        else:
            comparison = "<" if self.operation.aggregate == "min" else ">"
            keeps = builder.or_(
                builder.fcmp_ordered(comparison, held, weight), builder.fcmp_unordered("uno", weight, weight)
            )
            joined = builder.select(keeps, held, weight)
        emitter.store(joined, total, SUM_BYTES)

    def _store(self, unit: _Unit) -> None:
        emitter, builder = self.emitter, self.emitter.builder
        y = operand_at(emitter, Y, 2, InnerStride.ONE, (0, unit.part), (1, unit.first))
        with emitter.for_range(0, emitter.mul(unit.rows, self.targets)) as loop:
            value = emitter.load(emitter.offset(unit.sums, loop.index, F64), F64, SUM_BYTES)
            if self.operation.aggregate != "sum":
                value = builder.select(builder.fcmp_unordered("uno", value, value), F64(0.0), value)
            y.store(value, loop.index, 1)
