"""Attention in one kernel: scores of some queries, their softmax, and the values weighted by it, all in the caches.

A unit is some rows of queries of one batch. Its scores lie in scratch, [rows, keys] with rows a multiple of the panel
apart; exponentials replace them, and one over their sum is left to the epilogue of the second product.
"""

from __future__ import annotations

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.matmul import PanelSource, batch_starts, standing_at
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.normalize import emit_exponentials
from glowstone.backends.cpu.generators.product import FLOAT_BYTES, LeftRows, ProductEmitter, Results
from glowstone.backends.cpu.ir_types import F32, Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.product_tile import ProductTile
from glowstone.scalar import Expression, Input, apply
from glowstone.types import ElementType

Y, Q, K, V, FIRST_EXTRA = range(5)
ROWS_PER_UNIT, CHUNKS = range(2)
DIVIDED = apply("mul", Input(ElementType.F32, 0), Input(ElementType.F32, 1))


class AttentionEmitter:
    """Emits one kernel; `forms` say how columns of keys and of values are brought side by side."""

    def __init__(self, emitter: Emitter, panel: int, forms: tuple[str, str], scores: Expression | None) -> None:
        self._emitter = emitter
        self._tile = ProductTile.of(emitter.target, panel)
        self._forms = forms
        self._scores_product = ProductEmitter(emitter, self._tile, scores)
        self._values_product = ProductEmitter(emitter, self._tile, DIVIDED)
        self._depth, self._keys = emitter.extent(Q, -1), emitter.extent(K, -1)
        self._pitch = emitter.mul(emitter.ceil_div(self._keys, panel), panel)
        self._scores = emitter.strided(emitter.scratch, F32, (emitter.maximum(self._depth, self._keys), panel))
        self._scales = emitter.strided(self._scores, F32, (emitter.derived(ROWS_PER_UNIT), self._pitch))

    def emit(self) -> None:
        """Units are (batch, chunk of queries)."""
        emitter = self._emitter
        queries = emitter.extent(Y, -2)
        with emitter.for_units() as units:
            batch, chunk = emitter.divmod(units.index, emitter.derived(CHUNKS))
            starts = batch_starts(emitter, batch)
            first = emitter.mul(chunk, emitter.derived(ROWS_PER_UNIT))
            rows = emitter.minimum(emitter.derived(ROWS_PER_UNIT), emitter.sub(queries, first))
            self._emit_scores(starts, first, rows)
            with emitter.for_range(0, rows) as row:
                run = self._score_run(emitter.mul(row.index, self._pitch))
                _, total = emit_exponentials(emitter, run, run, self._keys)
                are_none = emitter.compare(self._keys, "==", 0)  # then the sums of values are 0, whatever they are over
                total = emitter.select(are_none, emitter.f32(1.0), total)
                scale = emitter.builder.fdiv(emitter.f32(1.0), total)
                emitter.store(scale, emitter.offset(self._scales, row.index), FLOAT_BYTES)
            self._emit_values(starts, first, rows)

    def _score_run(self, offset: Value) -> InnerOperand:
        """Scores, from an element on."""
        emitter = self._emitter
        pointer = emitter.offset(self._scores, offset)
        return InnerOperand(emitter, ElementType.F32, InnerStride.ONE, pointer, emitter.i64(1))

    def _emit_scores(self, starts: list[Value], first: Value, rows: Value) -> None:
        """Queries times keys, and the epilogue of that."""
        emitter = self._emitter
        row_stride = emitter.stride(Q, -2)
        along = 1 if emitter.key.operands[Q].inner is InnerStride.ONE else emitter.stride(Q, -1)
        left = LeftRows(emitter.strided(starts[Q], F32, (first, row_stride)), row_stride, along)
        extras = range(FIRST_EXTRA, len(emitter.key.operands))
        with emitter.for_range(0, self._keys, self._tile.panel) as panels:
            column = panels.index
            width = emitter.sub(self._keys, column)
            corner = emitter.strided(starts[K], F32, (column, emitter.stride(K, -1)))
            strides = emitter.stride(K, -2), emitter.stride(K, -1)
            source = PanelSource(emitter, self._tile, corner, strides, self._depth, width, emitter.scratch)
            operands = [
                self._score_run(column),
                *(standing_at(emitter, extra, starts[extra], first, column) for extra in extras),
            ]
            pitches = [self._pitch, *(emitter.stride(extra, -2) for extra in extras)]
            results = Results(operands, pitches, width)
            self._scores_product.emit_rows(left, source.emit(self._forms[0]), self._depth, results, rows)

    def _emit_values(self, starts: list[Value], first: Value, rows: Value) -> None:
        """Exponentials times values, each row over its sum."""
        emitter = self._emitter
        columns = emitter.extent(Y, -1)
        left = LeftRows(self._scores, self._pitch, 1)
        scales = InnerOperand(emitter, ElementType.F32, InnerStride.ZERO, self._scales, emitter.i64(0))
        with emitter.for_range(0, columns, self._tile.panel) as panels:
            column = panels.index
            width = emitter.sub(columns, column)
            corner = emitter.strided(starts[V], F32, (column, emitter.stride(V, -1)))
            strides = emitter.stride(V, -2), emitter.stride(V, -1)
            source = PanelSource(emitter, self._tile, corner, strides, self._keys, width, emitter.scratch)
            operands = [standing_at(emitter, Y, starts[Y], first, column), scales]
            results = Results(operands, [emitter.stride(Y, -2), emitter.i64(1)], width)
            self._values_product.emit_rows(left, source.emit(self._forms[1]), self._keys, results, rows)
