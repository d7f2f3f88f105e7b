"""Direct convolution on channel blocks.

A tile of pixels times a panel of output blocks is accumulated in registers over the whole reduction, then goes through
the epilogue and is stored once. Weights stream in the order in which they are packed; inputs are broadcast lane by
lane from addresses in a `PixelTable`, so that padding, strides and row ends cost nothing in the inner loop.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import cast

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.block_epilogue import Epilogue
from glowstone.backends.cpu.generators.pixel_table import PixelTable, TableMemory, TapRows, Window
from glowstone.backends.cpu.generators.tile_store import TileStore
from glowstone.backends.cpu.generators.tiles import TilingValues, switch_on_count
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.kernels.blocked_convolution import DENSE, INSIDE, POINT
from glowstone.backends.cpu.operations.blocked import BlockedConvolution
from glowstone.backends.cpu.pixel_tiling import TILING_COUNT, tile_sizes
from glowstone.backends.cpu.register_tile import pixels_per_tile
from glowstone.backends.cpu.target import Target

Y, X, W = 0, 1, 2
LINE_FLOATS = 16
"""Floats of a cache line."""
STEP_PRODUCTS = 96
"""Vector products of one step: enough to hide what a step costs, few enough to leave LLVM no wrong ideas."""
RARE_STEP_PRODUCTS = 24
"""Likewise, of tiles much smaller than a whole one, which are few: less code."""
TILES_AHEAD = 8
"""So many tiles together prefetch the next slice of weights."""


@dataclass(frozen=True)
class _Step:
    """What one step of the reduction takes: some lanes of one tap of one input block."""

    lanes: int
    parts: int
    """Steps of a whole block."""


@dataclass(frozen=True)
class _Slice:
    """One slice of the reduction of one weight panel."""

    weights: Value
    """Address of its first weight."""
    inputs: Value
    """Address of its first input block."""
    taps: Value
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
    inputs: Value
    """Of dense inputs, where the image begins in a channel block; its pixels are numbered from 0."""


@dataclass(frozen=True)
class _Tile:
    """One tile: pixels are numbered from the chunk's first."""

    pixel: Value
    count: Value
    partial: Value
    """Address of its partial sums."""
    weights_ahead: Value
    """Address of what it prefetches of the next slice's weights."""
    pixel_ahead: Value
    """The next tile's first pixel, whose inputs it prefetches, or its own."""
    inputs: Value
    """Of dense inputs, the offset of the first pixel's in a channel block."""
    inputs_ahead: Value
    """Floats from there to those of `pixel_ahead`."""


@dataclass(frozen=True)
class _Place:
    """Where a step of the reduction stands."""

    inputs: Value
    """Address of the input block's first lane of this step."""
    entry: Value
    """Entry in the pixel table of this tap and the tile's first pixel."""
    taps: Value
    """Taps left in the input block, this one counted."""
    parts: Value
    """Steps left in the tap, this one counted."""

    @property
    def values(self) -> tuple[Value, Value, Value, Value]:
        return self.inputs, self.entry, self.taps, self.parts


PLACE_END = 2 + len(fields(_Place))
"""Sums follow the place in the state of the reduction loop, weights and weights ahead precede it."""


class BlockedConvolutionGenerator:
    """Emits one kernel. Scratch: zeros for one tile, sums of one tile (of a chunk, if there are slices), table."""

    def __init__(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        self.operation = cast(BlockedConvolution, key.operation)
        self.emitter = emitter
        self.lanes = target.channel_block
        self.panel = self.operation.tile
        self.most = pixels_per_tile(target, self.panel)
        self.is_point = key.variant[0] == POINT
        self.is_dense = key.variant[1] == DENSE
        self.tap_weights = self.lanes * self.panel * self.lanes
        self.lines_ahead = -(-self.tap_weights // (TILES_AHEAD * LINE_FLOATS))
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
        # with a stride, neighbours are on lines of their own, and prefetching them cost more than it gave
        self.reads_ahead = emitter.compare(geometry[1], "==", 1)
        self.zeros = emitter.scratch
        self.partial = emitter.offset(emitter.scratch, self.tile_sums)
        is_sliced = emitter.compare(self.tiling.slices, ">", 1)
        self.partial_stride = emitter.select(is_sliced, I64(self.tile_sums), I64(0))
        partial_end = emitter.add(emitter.mul(self.tiling.chunk, self.partial_stride), self.tile_sums)
        memory = TableMemory(emitter.offset(self.partial, partial_end), self.tiling.capacity)
        self.table = PixelTable(emitter, epilogue.own_operands, memory)
        self.store = TileStore(emitter, epilogue, self.table, self.panel, self.lanes, self.most)
        self.tap_rows = TapRows(emitter, window, self.table, self.zeros, inside=key.variant[1] == INSIDE)

    def emit(self) -> None:
        """Units are (group, span of its panels, chunk), chunks fastest: a span's weights serve all its chunks.

        Of dense inputs, a chunk is one of an image.
        """
        emitter, tiling = self.emitter, self.tiling
        for start in range(0, self.tile_sums, self.lanes):
            emitter.store_floats(emitter.zeros(self.lanes), emitter.offset(self.zeros, start))
        group_panels = emitter.div(emitter.extent(W, 0), self.groups)
        spans = emitter.div(emitter.add(group_panels, emitter.sub(tiling.span, 1)), tiling.span)
        with emitter.for_units() as units:
            numbered, chunk_number = emitter.divmod(units.index, tiling.chunks)
            image = emitter.i64(0)
            if self.is_dense:
                numbered, image = emitter.divmod(numbered, emitter.extent(Y, 0))
            group, span = emitter.divmod(numbered, spans)
            chunk = self._chunk(image, chunk_number)
            first_panel = emitter.mul(span, tiling.span)
            end_panel = emitter.minimum(emitter.add(first_panel, tiling.span), group_panels)
            with emitter.for_range(first_panel, end_panel) as panels:
                panel = emitter.add(emitter.mul(group, group_panels), panels.index)
                with emitter.for_range(0, tiling.slices) as slices:
                    self._slice(chunk, self._locate(group, panel, slices.index))

    def _chunk(self, image: Value, number: Value) -> _Chunk:
        """Fill the pixel table of a chunk."""
        emitter, tiling = self.emitter, self.tiling
        first_tile = emitter.mul(number, tiling.chunk)
        end_tile = emitter.minimum(emitter.add(first_tile, tiling.chunk), tiling.tiles)
        first_pixel = tiling.balanced.first_pixel(first_tile)
        count = emitter.sub(tiling.balanced.first_pixel(end_tile), first_pixel)
        before = emitter.mul(image, emitter.mul(emitter.extent(Y, 2), emitter.extent(Y, 3)))
        write_taps = None if self.is_dense else self.tap_rows.write
        self.table.fill(emitter.add(before, first_pixel), count, write_taps)
        return _Chunk(first_tile, end_tile, first_pixel, emitter.mul(image, emitter.stride(X, 0)))

    def _locate(self, group: Value, panel: Value, number: Value) -> _Slice:
        emitter, tiling = self.emitter, self.tiling
        in_blocks = emitter.extent(W, 1)
        first = emitter.mul(number, tiling.slice)
        count = emitter.minimum(emitter.sub(in_blocks, first), tiling.slice)
        tap = emitter.mul(emitter.add(emitter.mul(panel, in_blocks), first), self.taps)
        input_block = emitter.add(emitter.mul(group, in_blocks), first)
        return _Slice(
            weights=emitter.offset(emitter.pointer(W), emitter.mul(tap, self.tap_weights)),
            inputs=emitter.offset(emitter.pointer(X), emitter.mul(input_block, emitter.stride(X, 1))),
            taps=emitter.mul(count, self.taps),
            is_first=emitter.compare(number, "==", 0),
            is_last=emitter.compare(emitter.add(number, 1), "==", tiling.slices),
            first_block=emitter.mul(panel, self.panel),
        )

    def _slice(self, chunk: _Chunk, part: _Slice) -> None:
        """All tiles of a chunk, each by code for exactly its number of pixels."""
        emitter = self.emitter
        with emitter.for_range(chunk.first_tile, chunk.end_tile) as tiles:
            tile = self._tile(chunk, part, tiles.index)
            with switch_on_count(emitter, tile.count, tile_sizes(self.most)) as rounds:
                for size in rounds:
                    self._end_of_slice(part, tile, self._accumulate(part, tile, size))
            if self.store.uses_memory:
                with emitter.if_true(part.is_last):
                    self.store.store_saved(part.first_block, tile.pixel, tile.count, tile.partial)

    def _tile(self, chunk: _Chunk, part: _Slice, number: Value) -> _Tile:
        emitter, balanced = self.emitter, self.tiling.balanced
        in_chunk = emitter.sub(number, chunk.first_tile)
        pixel = emitter.sub(balanced.first_pixel(number), chunk.first_pixel)
        count = balanced.count(number)
        is_last = emitter.compare(emitter.add(number, 1), "==", chunk.end_tile)
        has_ahead = emitter.both(emitter.builder.not_(is_last), self.reads_ahead)
        pixel_ahead = emitter.select(has_ahead, emitter.add(pixel, count), pixel)
        return _Tile(
            pixel=pixel,
            count=count,
            partial=emitter.offset(self.partial, emitter.mul(in_chunk, self.partial_stride)),
            weights_ahead=self._weights_ahead(part, in_chunk),
            pixel_ahead=pixel_ahead,
            inputs=emitter.add(chunk.inputs, emitter.mul(emitter.add(chunk.first_pixel, pixel), self.lanes)),
            inputs_ahead=emitter.mul(emitter.sub(pixel_ahead, pixel), self.lanes),
        )

    def _end_of_slice(self, part: _Slice, tile: _Tile, sums: list[Value]) -> None:
        """Keep partial sums, or store the final ones."""
        if self.store.uses_memory:
            self.store.save(sums, tile.partial)
            return
        with self.emitter.if_else(part.is_last) as (then, otherwise):
            with then:
                self.store.store(part.first_block, tile.pixel, sums)
            with otherwise:
                self.store.save(sums, tile.partial)

    def _weights_ahead(self, part: _Slice, tile: Value) -> Value:
        """Where this tile's share of the next slice's weights begins, to prefetch some lines per step."""
        emitter = self.emitter
        share = emitter.mul(part.taps, self.lines_ahead * LINE_FLOATS)
        size = emitter.mul(part.taps, self.tap_weights)
        offset = emitter.minimum(emitter.mul(tile, share), size)
        return emitter.offset(part.weights, emitter.add(size, offset))

    def _accumulate(self, part: _Slice, tile: _Tile, size: int) -> list[Value]:
        """Sums of the tile's `size` pixels by the panel's blocks, pixel-major, with the partial ones of earlier slices.

        Input blocks, taps and parts of a block are one loop: every loop end costs a mispredicted branch. A slice is
        summed by itself and then added to what came before: that rounds less than one long chain.
        """
        emitter = self.emitter
        step = self._step_of(size)
        earlier = emitter.select(part.is_first, self.zeros, tile.partial)
        nothing = [emitter.zeros(self.lanes)] * (size * self.panel)
        first = self.table.taps_row(tile.pixel)
        inputs = emitter.offset(part.inputs, tile.inputs) if self.is_dense else part.inputs
        place = _Place(inputs, first, self.taps, I64(step.parts))
        state = [part.weights, tile.weights_ahead, *place.values, *nothing]
        with emitter.for_range(0, emitter.mul(part.taps, step.parts), carried=state) as loop:
            weights, ahead = loop.values[:2]
            place = _Place(*loop.values[2:PLACE_END])
            self._prefetch(ahead, tile, place, size)
            sums = self._step(weights, place, loop.values[PLACE_END:], size)
            moved = [
                emitter.offset(weights, self.tap_weights // step.parts),
                emitter.offset(ahead, self.lines_ahead * LINE_FLOATS // step.parts),
            ]
            loop.carry([*moved, *self._next_place(place, first, step).values, *sums])
        pairs = zip(loop.results[PLACE_END:], self.store.load(earlier, size), strict=True)
        return [emitter.builder.fadd(total, before) for total, before in pairs]

    def _step_of(self, size: int) -> _Step:
        """How much of a block one step takes, of tiles of `size` pixels."""
        is_rare = 1 < size < self.most - 1
        products = RARE_STEP_PRODUCTS // (size * self.panel) if is_rare else STEP_PRODUCTS // (self.most * self.panel)
        lanes = min(self.lanes, 1 << max(products, 1).bit_length() - 1)
        return _Step(lanes, self.lanes // lanes)

    def _prefetch(self, weights: Value, tile: _Tile, place: _Place, size: int) -> None:
        """Ask for weights of the next slice and, of a 1 x 1 kernel, for the inputs of the next tile."""
        emitter = self.emitter
        for line in range(-(-self.lines_ahead // self._step_of(size).parts)):
            emitter.prefetch(emitter.offset(weights, line * LINE_FLOATS))
        if self.is_point:
            ahead = emitter.offset(place.inputs, tile.inputs_ahead) if self.is_dense else place.inputs
            entry = self.table.taps_row(tile.pixel_ahead)
            for pixel in range(0, size, LINE_FLOATS // self.lanes):
                emitter.prefetch(self._source(entry, ahead, pixel))

    def _source(self, entry: Value, inputs: Value, pixel: int) -> Value:
        """Address of the input lanes of a pixel of the tile; `entry` is that of the first."""
        if self.is_dense:
            return self.emitter.offset(inputs, pixel * self.lanes)
        return self.tap_rows.input_pointer(self.table.next_pixel(entry, pixel), inputs)

    def _next_place(self, place: _Place, first: Value, step: _Step) -> _Place:
        """The next part of the input block, or the next tap, or the first tap of the next input block."""
        emitter = self.emitter
        parts = emitter.sub(place.parts, 1)
        tap_ends = emitter.compare(parts, "==", 0)
        next_part = emitter.offset(place.inputs, step.lanes)
        same_block = emitter.offset(place.inputs, step.lanes - self.lanes)
        next_block = emitter.offset(same_block, emitter.stride(X, 1))
        if self.is_point:
            following = _Place(next_block, place.entry, place.taps, I64(step.parts))
        else:
            taps = emitter.sub(place.taps, 1)
            block_ends = emitter.compare(taps, "==", 0)
            following = _Place(
                emitter.select(block_ends, next_block, same_block),
                emitter.select(block_ends, first, self.table.next_tap(place.entry)),
                emitter.select(block_ends, self.taps, taps),
                I64(step.parts),
            )
        if step.parts == 1:
            return following
        pairs = zip(following.values, (next_part, place.entry, place.taps, parts), strict=True)
        return _Place(*(emitter.select(tap_ends, after, now) for after, now in pairs))

    def _step(self, weights: Value, place: _Place, sums: list[Value], size: int) -> list[Value]:
        """Some lanes of one tap of one input block, unrolled."""
        emitter, lanes = self.emitter, self.lanes
        sums = list(sums)
        sources = [self._source(place.entry, place.inputs, number) for number in range(size)]
        for lane in range(self._step_of(size).lanes):
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
