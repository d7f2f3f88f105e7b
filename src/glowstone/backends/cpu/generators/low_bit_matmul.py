"""Bodies of matrix products with packed weights: a step makes one vector of floats from bytes, for all rows of a tile.

A tile's sums are carried in vectors along the depth and folded at the end, in an order that depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.run_reduction import Monoid, fold_lanes
from glowstone.backends.cpu.ir_types import F32, I8, I32, Value, vector
from glowstone.lir.operations import LowBitMatMul

Y, A, WEIGHTS, SCALES, ZERO_POINTS = range(5)
GROUPS_PER_UNIT = 0
BYTE = 8


def emit_low_bit_matmul(emitter: Emitter, operation: LowBitMatMul, columns: int, rows: int) -> None:
    """Units are runs of groups of `columns`; of `rows` and more a tile has half the columns."""
    product = _Product(emitter, operation)
    all_rows, all_columns = emitter.extent(Y, 0), emitter.extent(Y, 1)
    with emitter.for_units() as units:
        first = emitter.mul(units.index, emitter.mul(emitter.derived(GROUPS_PER_UNIT), columns))
        last = emitter.minimum(emitter.add(first, emitter.mul(emitter.derived(GROUPS_PER_UNIT), columns)), all_columns)
        whole = emitter.sub(last, emitter.rem(emitter.sub(last, first), columns))
        row_tiles = emitter.sub(all_rows, emitter.rem(all_rows, rows))
        with emitter.for_range(first, whole, columns) as groups:
            with emitter.for_range(0, row_tiles, rows) as tile:
                for half in (0, columns // 2):
                    product.emit_tile(tile.index, rows, emitter.add(groups.index, half), columns // 2)
            with emitter.for_range(row_tiles, all_rows) as row:
                product.emit_tile(row.index, 1, groups.index, columns)
        with emitter.for_range(whole, last) as column, emitter.for_range(0, all_rows) as row:
            product.emit_tile(row.index, 1, column.index, 1)


@dataclass(frozen=True)
class _Column:
    """One column: its bytes, scale and zero point in the block at hand."""

    weights: Value
    scale: Value
    zero_point: Value


class _Product:
    """Emits tiles of the product."""

    def __init__(self, emitter: Emitter, operation: LowBitMatMul) -> None:
        self.emitter = emitter
        self.bits = operation.bits
        self.block = operation.block
        self.lanes = min(emitter.target.float_lanes, operation.block)

    def emit_tile(self, first_row: Value, rows: int, first_column: Value, columns: int) -> None:
        """Results of `rows` by `columns`."""
        emitter = self.emitter
        starts = [
            emitter.strided(emitter.pointer(A), F32, (emitter.add(first_row, row), emitter.stride(A, 0)))
            for row in range(rows)
        ]
        depth = emitter.extent(A, 1)
        whole = emitter.div(depth, self.block)
        zeros = [emitter.zeros(self.lanes)] * (rows * columns)
        with emitter.for_range(0, whole, carried=zeros) as blocks:
            in_block = self._columns(first_column, columns, blocks.index)
            start = emitter.mul(blocks.index, self.block)
            with emitter.for_range(0, self.block, self.lanes, blocks.values) as steps:
                place = emitter.add(start, steps.index)
                a = [emitter.load_floats(emitter.offset(row, place), self.lanes) for row in starts]
                steps.carry(self._added(steps.values, a, in_block, steps.index))
            blocks.carry(steps.results)
        sums = self._last_block(starts, blocks.results, first_column, columns, whole)
        self._store(sums, first_row, first_column, columns)

    def _last_block(
        self, starts: Sequence[Value], sums: Sequence[Value], first_column: Value, columns: int, block: Value
    ) -> list[Value]:
        """Sums with a block that is not full, the depth being no multiple of it; what lies behind counts as 0."""
        emitter = self.emitter
        start = emitter.mul(block, self.block)
        rest = emitter.sub(emitter.extent(A, 1), start)
        with emitter.for_range(0, rest, self.lanes, sums) as steps:
            place = emitter.add(start, steps.index)
            mask = emitter.first_lanes(emitter.sub(rest, steps.index), self.lanes)
            nothing = emitter.zeros(self.lanes)
            a = [emitter.masked_load(emitter.offset(row, place), mask, nothing) for row in starts]
            steps.carry(self._added(steps.values, a, self._columns(first_column, columns, block), steps.index))
        return steps.results

    def _columns(self, first: Value, columns: int, block: Value) -> list[_Column]:
        emitter = self.emitter
        result = []
        for number in range(columns):
            column = emitter.add(first, number)
            scale, zero_point = (
                emitter.load(
                    emitter.strided(
                        emitter.pointer(operand),
                        F32,
                        (column, emitter.stride(operand, 0)),
                        (block, emitter.stride(operand, 1)),
                    ),
                    F32,
                    4,
                )
                for operand in (SCALES, ZERO_POINTS)
            )
            weights = emitter.strided(
                emitter.pointer(WEIGHTS), I8, (column, emitter.stride(WEIGHTS, 0)), (block, emitter.stride(WEIGHTS, 1))
            )
            result.append(_Column(weights, emitter.splat(scale, self.lanes), emitter.splat(zero_point, self.lanes)))
        return result

    def _added(
        self, sums: Sequence[Value], a: Sequence[Value], columns: Sequence[_Column], place: Value
    ) -> list[Value]:
        """Sums [columns, rows] with one more vector of products."""
        emitter, result = self.emitter, list(sums)
        for number, column in enumerate(columns):
            centred = emitter.builder.fsub(self._numbers(column.weights, place), column.zero_point)
            weights = emitter.builder.fmul(centred, column.scale)
            for row, x in enumerate(a):
                index = number * len(a) + row
                result[index] = emitter.multiply_add(x, weights, result[index])
        return result

    def _numbers(self, weights: Value, place: Value) -> Value:
        """The packed numbers from `place` in a block on, a vector of floats."""
        builder, lanes = self.emitter.builder, self.lanes
        per_byte = BYTE // self.bits
        first = self.emitter.offset(weights, self.emitter.div(place, per_byte), I8)
        count = lanes // per_byte
        packed = self.emitter.load(first, vector(I8, count))
        if per_byte > 1:
            packed = self._repeated(packed, count, per_byte)
        wide = builder.zext(packed, vector(I32, lanes))
        if per_byte > 1:
            kind = vector(I32, lanes)
            shifts = ir.Constant(kind, [lane % per_byte * self.bits for lane in range(lanes)])
            mask = ir.Constant(kind, [2**self.bits - 1] * lanes)
            wide = builder.and_(builder.lshr(wide, shifts), mask)
        return builder.uitofp(wide, vector(F32, lanes))

    def _repeated(self, packed: Value, count: int, times: int) -> Value:
        """Every byte as many times as it has numbers, side by side."""
        if count == 1:
            return self.emitter.splat(packed, times)
        mask = ir.Constant(ir.VectorType(I32, count * times), [lane // times for lane in range(count * times)])
        return self.emitter.builder.shuffle_vector(packed, ir.Constant(packed.type, ir.Undefined), mask)

    def _store(self, sums: Sequence[Value], first_row: Value, first_column: Value, columns: int) -> None:
        emitter = self.emitter
        addition = Monoid(emitter.zeros, emitter.builder.fadd)
        rows = len(sums) // columns
        for index, vector_sum in enumerate(sums):
            column, row = divmod(index, rows)
            place = emitter.strided(
                emitter.pointer(Y),
                F32,
                (emitter.add(first_row, row), emitter.stride(Y, 0)),
                (emitter.add(first_column, column), emitter.stride(Y, 1)),
            )
            emitter.store(fold_lanes(emitter, vector_sum, 1, addition), place, 4)
