"""Direct convolution on channel blocks.

A tile of pixels times a panel of output blocks is accumulated in registers over the whole reduction, then goes through
the epilogue and is stored once. Weights stream in the order in which they are packed; inputs are broadcast lane by
lane from addresses in a `PixelTable`, so that padding, strides and row ends cost nothing in the inner loop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.kernels.epilogue import Epilogue, extra_kinds
from glowstone.backends.cpu.kernels.pixel_table import PixelTable, TableMemory, TapRows, Window, table_bytes
from glowstone.backends.cpu.kernels.pixel_tiles import (
    TILING_COUNT,
    Reduction,
    TilingValues,
    plan_tiling,
    switch_on_count,
    tile_sizes,
)
from glowstone.backends.cpu.kernels.tile_store import TileStore
from glowstone.backends.cpu.operations.blocked import BlockedConvolution
from glowstone.backends.cpu.register_tile import pixels_per_tile
from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.table import KernelCall
from glowstone.types import ElementType

POINT, WINDOW = "point", "window"
INSIDE, PADDED = "inside", "padded"
Y, X, W = 0, 1, 2
LINE_FLOATS = 16
"""Floats of a cache line."""


@emits(BlockedConvolution)
class BlockedConvolutionFamily(KernelFamily):
    """Variant: point or window (is the kernel 1 x 1), inside or padded (may taps fall outside), kinds of extras.

    Strides, dilations and groups are read from the call, behind the derived integers of the tiling, so that all
    convolutions with one epilogue share a kernel; the key's operation has 1 in their place.
    """

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        operation = cast(BlockedConvolution, instruction.operation)
        y, x, w = instruction.operands[:3]
        panels, in_blocks, height, width, lanes_in, panel, lanes_out = w.shape
        taps = height * width
        pixels = y.shape[0] * y.shape[2] * y.shape[3]
        kinds = extra_kinds(instruction)
        inside = _is_inside(operation, instruction)
        variant = (POINT if taps == 1 else WINDOW, INSIDE if inside else PADDED, *kinds)
        most = pixels_per_tile(target, panel)
        tiling = plan_tiling(
            pixels,
            most,
            panels // operation.groups,
            Reduction(in_blocks, taps * lanes_in * panel * lanes_out * FLOAT_BYTES),
            pixel_bytes=in_blocks * lanes_in * operation.strides[0] * operation.strides[1] * FLOAT_BYTES,
            rows=1 + len(kinds) + taps,
        )
        spans = operation.groups * -(-(panels // operation.groups) // tiling.span)
        tile_bytes = most * panel * lanes_out * FLOAT_BYTES
        partial_sums = tile_bytes * (1 + tiling.chunk if tiling.slices > 1 else 1)
        return KernelCall(
            replace(KernelKey.of(instruction, variant), operation=_canonical(operation)),
            units=spans * tiling.chunks if pixels else 0,
            scratch=tile_bytes + table_bytes(taps, len(kinds), tiling.capacity) + partial_sums,
            cost=target.cost(2.0 * pixels * w.size, FLOAT_BYTES * (y.size + x.size + w.size)),
            derived=(*tiling.derived, *operation.strides, *operation.dilations, operation.groups),
        )

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        _Kernel(key, target, emitter).emit()


def _canonical(operation: BlockedConvolution) -> BlockedConvolution:
    return replace(operation, strides=(1, 1), dilations=(1, 1), groups=1)


def _is_inside(operation: BlockedConvolution, instruction: Instruction) -> bool:
    """Whether every tap of every output pixel falls inside the input."""
    y, x, w = instruction.operands[:3]
    for axis in (0, 1):
        pad = instruction.integers[axis]
        last = (y.shape[2 + axis] - 1) * operation.strides[axis] + (w.shape[2 + axis] - 1) * operation.dilations[axis]
        if pad > 0 or last - pad >= x.shape[2 + axis]:
            return False
    return True


@dataclass(frozen=True)
class _Slice:
    """One slice of the reduction of one weight panel."""

    weights: Value
    """Address of its first weight."""
    inputs: Value
    """Address of its first input block."""
    steps: Value
    """Input blocks times taps."""
    is_first: Value
    is_last: Value
    first_block: Value
    """Number of the panel's first output block."""


@dataclass(frozen=True)
class _Chunk:
    """The tiles of one unit."""

    first_tile: Value
    end_tile: Value
    first_pixel: Value


class _Kernel:
    """Emits one kernel. Scratch: zeros for one tile, sums of one tile (of a chunk, if there are slices), table."""

    def __init__(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        self.operation = cast(BlockedConvolution, key.operation)
        self.emitter = emitter
        self.lanes = target.channel_block
        self.panel = self.operation.tile
        self.most = pixels_per_tile(target, self.panel)
        self.is_point = key.variant[0] == POINT
        self.step_weights = self.lanes * self.panel * self.lanes
        self.tile_sums = self.most * self.panel * self.lanes
        kinds = tuple(str(kind) for kind in key.variant[2:])
        epilogue = Epilogue(emitter, self.operation.epilogue, kinds, self.lanes)
        self.tiling = TilingValues(emitter)
        geometry = [emitter.derived(TILING_COUNT + number) for number in range(5)]
        self.groups = geometry[4]
        window = Window(
            extents=(emitter.extent(W, 2), emitter.extent(W, 3)),
            strides=(geometry[0], geometry[1]),
            dilations=(geometry[2], geometry[3]),
        )
        self.taps = emitter.mul(*window.extents)
        self.zeros = emitter.scratch
        self.partial = emitter.offset(emitter.scratch, self.tile_sums)
        is_sliced = emitter.compare(self.tiling.slices, ">", 1)
        self.partial_stride = emitter.select(is_sliced, I64(self.tile_sums), I64(0))
        partial_end = emitter.add(emitter.mul(self.tiling.chunk, self.partial_stride), self.tile_sums)
        memory = TableMemory(emitter.offset(self.partial, partial_end), self.tiling.capacity)
        self.table = PixelTable(emitter, epilogue.own_operands, memory)
        self.store = TileStore(emitter, epilogue, self.table, self.panel, self.lanes)
        self.tap_rows = TapRows(emitter, window, self.table, self.zeros, inside=key.variant[1] == INSIDE)

    def emit(self) -> None:
        """Units are (group, span of its panels, chunk), chunks fastest: a span's weights serve all its chunks."""
        emitter, tiling = self.emitter, self.tiling
        for start in range(0, self.tile_sums, self.lanes):
            emitter.store_floats(emitter.zeros(self.lanes), emitter.offset(self.zeros, start))
        group_panels = emitter.div(emitter.extent(W, 0), self.groups)
        spans = emitter.div(emitter.add(group_panels, emitter.sub(tiling.span, 1)), tiling.span)
        with emitter.for_units() as units:
            numbered, chunk_number = emitter.divmod(units.index, tiling.chunks)
            group, span = emitter.divmod(numbered, spans)
            chunk = self._chunk(chunk_number)
            first_panel = emitter.mul(span, tiling.span)
            end_panel = emitter.minimum(emitter.add(first_panel, tiling.span), group_panels)
            with emitter.for_range(first_panel, end_panel) as panels:
                panel = emitter.add(emitter.mul(group, group_panels), panels.index)
                with emitter.for_range(0, tiling.slices) as slices:
                    self._slice(chunk, self._locate(group, panel, slices.index))

    def _chunk(self, number: Value) -> _Chunk:
        """Fill the pixel table of a chunk."""
        emitter, tiling = self.emitter, self.tiling
        first_tile = emitter.mul(number, tiling.chunk)
        end_tile = emitter.minimum(emitter.add(first_tile, tiling.chunk), tiling.tiles)
        first_pixel = tiling.balanced.first_pixel(first_tile)
        count = emitter.sub(tiling.balanced.first_pixel(end_tile), first_pixel)
        self.table.fill(first_pixel, count, self.tap_rows.write)
        return _Chunk(first_tile, end_tile, first_pixel)

    def _locate(self, group: Value, panel: Value, number: Value) -> _Slice:
        emitter, tiling = self.emitter, self.tiling
        in_blocks = emitter.extent(W, 1)
        first = emitter.mul(number, tiling.slice)
        count = emitter.minimum(emitter.sub(in_blocks, first), tiling.slice)
        step = emitter.mul(emitter.add(emitter.mul(panel, in_blocks), first), self.taps)
        input_block = emitter.add(emitter.mul(group, in_blocks), first)
        return _Slice(
            weights=emitter.offset(emitter.pointer(W), emitter.mul(step, self.step_weights)),
            inputs=emitter.offset(emitter.pointer(X), emitter.mul(input_block, emitter.stride(X, 1))),
            steps=emitter.mul(count, self.taps),
            is_first=emitter.compare(number, "==", 0),
            is_last=emitter.compare(emitter.add(number, 1), "==", tiling.slices),
            first_block=emitter.mul(panel, self.panel),
        )

    def _slice(self, chunk: _Chunk, part: _Slice) -> None:
        """All tiles of a chunk, each by code for exactly its number of pixels."""
        emitter, balanced = self.emitter, self.tiling.balanced
        with emitter.for_range(chunk.first_tile, chunk.end_tile) as tiles:
            pixel = emitter.sub(balanced.first_pixel(tiles.index), chunk.first_pixel)
            number = emitter.sub(tiles.index, chunk.first_tile)
            partial = emitter.offset(self.partial, emitter.mul(number, self.partial_stride))
            ahead = self._weights_ahead(part, number)
            count = balanced.count(tiles.index)
            with switch_on_count(emitter, count, tile_sizes(self.most)) as rounds:
                for size in rounds:
                    initial = emitter.select(part.is_first, self.zeros, partial)
                    self._end_of_slice(part, pixel, self._accumulate(part, initial, ahead, pixel, size), partial)
            if self.store.uses_memory:
                with emitter.if_true(part.is_last):
                    self.store.store_saved(part.first_block, pixel, count, partial)

    def _end_of_slice(self, part: _Slice, pixel: Value, sums: list[Value], partial: Value) -> None:
        """Keep partial sums, or store the final ones."""
        if self.store.uses_memory:
            self.store.save(sums, partial)
            return
        with self.emitter.if_else(part.is_last) as (then, otherwise):
            with then:
                self.store.store(part.first_block, pixel, sums)
            with otherwise:
                self.store.save(sums, partial)

    def _weights_ahead(self, part: _Slice, tile: Value) -> Value:
        """Where this tile's share of the next slice's weights begins, to prefetch one line per step."""
        emitter = self.emitter
        share = emitter.mul(part.steps, LINE_FLOATS)
        size = emitter.mul(part.steps, self.step_weights)
        offset = emitter.minimum(emitter.mul(tile, share), size)
        return emitter.offset(part.weights, emitter.add(size, offset))

    def _accumulate(self, part: _Slice, initial: Value, ahead: Value, pixel: Value, size: int) -> list[Value]:
        """Sums of `size` pixels by the panel's blocks, pixel-major, on top of those at `initial`.

        Input blocks and taps are one loop: every loop end costs a mispredicted branch.
        """
        emitter = self.emitter
        first = self.table.taps_row(pixel)
        sums = self.store.load(initial, size)
        state = [part.weights, ahead, part.inputs, first, self.taps, *sums]
        with emitter.for_range(0, part.steps, carried=state) as loop:
            weights, ahead, inputs, entry, left, *sums = loop.values
            emitter.prefetch(ahead)
            sums = self._step(weights, inputs, entry, sums, size)
            following = self._next_step(inputs, entry, left, first)
            moved = [emitter.offset(weights, self.step_weights), emitter.offset(ahead, LINE_FLOATS)]
            loop.carry([*moved, *following, *sums])
        return loop.results[len(state) - len(sums) :]

    def _next_step(self, inputs: Value, entry: Value, left: Value, first: Value) -> tuple[Value, Value, Value]:
        """The next tap, or the first one of the next input block: block address, table entry, taps left."""
        emitter = self.emitter
        next_block = emitter.offset(inputs, emitter.stride(X, 1))
        if self.is_point:
            return next_block, entry, left
        left = emitter.sub(left, 1)
        wraps = emitter.compare(left, "==", 0)
        return (
            emitter.select(wraps, next_block, inputs),
            emitter.select(wraps, first, self.table.next_tap(entry)),
            emitter.select(wraps, self.taps, left),
        )

    def _step(self, weights: Value, inputs: Value, entry: Value, sums: list[Value], size: int) -> list[Value]:
        """One tap of one input block: all its lanes, unrolled."""
        emitter, lanes = self.emitter, self.lanes
        sums = list(sums)
        sources = [self.tap_rows.input_pointer(self.table.next_pixel(entry, number), inputs) for number in range(size)]
        if self.is_point:
            for number in range(0, size, 2):
                ahead = self.tap_rows.input_pointer(self.table.next_pixel(entry, size + number), inputs)
                emitter.prefetch(ahead)
        for lane in range(lanes):
            row = [
                emitter.load_floats(emitter.offset(weights, (lane * self.panel + block) * lanes), lanes)
                for block in range(self.panel)
            ]
            for number, source in enumerate(sources):
                value = emitter.splat(emitter.load_floats(emitter.offset(source, lane), 1), lanes)
                for block in range(self.panel):
                    at = number * self.panel + block
                    sums[at] = emitter.multiply_add(row[block], value, sums[at])
        return sums
