"""Convolution of few input channels in the plain layout, to channel blocks.

A unit is some output rows of one image. The input rows they need are copied between zeros (`PaddedInput`); then each
tile of pixels times a panel of output blocks is accumulated in registers, one window row after another, with the taps
of a row unrolled.
"""

from __future__ import annotations

from dataclasses import fields
from typing import cast

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.block_epilogue import Epilogue
from glowstone.backends.cpu.generators.padded_input import PaddedInput
from glowstone.backends.cpu.generators.pixel_table import PixelTable, TableMemory
from glowstone.backends.cpu.generators.tile_store import TileStore
from glowstone.backends.cpu.generators.tiles import BalancedTiles, switch_on_count
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.kernels.stem_convolution import StemRows
from glowstone.backends.cpu.operations.blocked import StemConvolution
from glowstone.backends.cpu.pixel_tiling import smallest_full_tile, tile_sizes
from glowstone.backends.cpu.register_tile import pixels_per_tile
from glowstone.backends.cpu.target import Target

X, W = 1, 2


class StemConvolutionGenerator:
    """Emits one kernel. Scratch: sums of one tile, pixel table, padded input."""

    def __init__(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        self.operation = cast(StemConvolution, key.operation)
        self.emitter = emitter
        self.lanes = target.channel_block
        self.panel = self.operation.tile
        self.most = pixels_per_tile(target, self.panel)
        kinds = tuple(str(kind) for kind in key.variant)
        epilogue = Epilogue(emitter, self.operation.epilogue, kinds, self.lanes)
        derived = {field.name: emitter.derived(number) for number, field in enumerate(fields(StemRows))}
        self.unit_rows, self.parts = derived["unit_rows"], derived["parts"]
        capacity = emitter.mul(self.unit_rows, emitter.extent(0, 3))
        self.sums = emitter.scratch
        rows = emitter.offset(self.sums, self.most * self.panel * self.lanes)
        self.table = PixelTable(emitter, epilogue.own_operands, TableMemory(rows, capacity))
        self.store = TileStore(emitter, epilogue, self.table, self.panel, self.lanes, self.most)
        self.input = PaddedInput(
            emitter, self.table.end(taps=1), self.operation.channels, derived["input_rows"], derived["pitch"]
        )

    def emit(self) -> None:
        emitter = self.emitter
        width = emitter.extent(0, 3)
        with emitter.for_units() as units:
            image, part = emitter.divmod(units.index, self.parts)
            first_row = emitter.mul(part, self.unit_rows)
            rows = emitter.minimum(emitter.sub(emitter.extent(0, 2), first_row), self.unit_rows)
            top = emitter.sub(emitter.mul(first_row, self.operation.strides[0]), emitter.integer(0))
            self.input.fill(image, top)
            first_line = emitter.add(emitter.mul(image, emitter.extent(0, 2)), first_row)
            pixels = emitter.mul(rows, width)

            def write_taps(entry: Value, _image: Value, y: Value, x: Value) -> None:
                row = emitter.mul(emitter.sub(y, first_row), self.operation.strides[0])
                column = emitter.mul(x, self.operation.strides[1])
                self.table.write(entry, emitter.add(emitter.mul(row, self.input.pitch), column))

            self.table.fill(emitter.mul(first_line, width), pixels, write_taps)
            with emitter.for_range(0, emitter.extent(W, 0)) as panels:
                self._panel(panels.index, pixels)

    def _panel(self, panel: Value, pixels: Value) -> None:
        """All pixels of a unit, for one weight panel."""
        emitter = self.emitter
        rounded = emitter.ceil_div(pixels, self.most)
        are_few = emitter.compare(pixels, "<", smallest_full_tile(self.most))
        tiles = emitter.select(are_few, pixels, rounded)
        balanced = BalancedTiles(emitter, *emitter.divmod(pixels, tiles))
        with emitter.for_range(0, tiles) as loop:
            pixel = balanced.first_pixel(loop.index)
            count = balanced.count(loop.index)
            first_block = emitter.mul(panel, self.panel)
            with switch_on_count(emitter, count, tile_sizes(self.most)) as rounds:
                for size in rounds:
                    sums = self._accumulate(panel, pixel, size)
                    if self.store.uses_memory:
                        self.store.save(sums, self.sums)
                    else:
                        self.store.store(first_block, pixel, sums)
            if self.store.uses_memory:
                self.store.store_saved(first_block, pixel, count, self.sums)

    def _accumulate(self, panel: Value, pixel: Value, size: int) -> list[Value]:
        """Sums of `size` pixels by the panel's blocks, pixel-major; input channels and window rows are one loop."""
        emitter, operation = self.emitter, self.operation
        height, width = operation.kernel
        row_weights = width * self.panel * self.lanes
        # from the call although known here: LLVM would unroll a loop of known length
        steps = emitter.mul(emitter.extent(W, 1), emitter.extent(W, 2))
        weights = emitter.offset(emitter.pointer(W), emitter.mul(panel, emitter.mul(steps, row_weights)))
        first = self.table.taps_row(pixel)
        offsets = [self.table.read(self.table.next_pixel(first, number)) for number in range(size)]
        down = emitter.mul(self.input.pitch, operation.dilations[0])
        channel = emitter.mul(self.input.pitch, self.input.rows)
        next_channel = emitter.sub(channel, emitter.mul(down, height - 1))
        sums = [emitter.zeros(self.lanes)] * (size * self.panel)
        state = [weights, self.input.memory, emitter.i64(height), *sums]
        with emitter.for_range(0, steps, carried=state) as loop:
            weights, row, left, *sums = loop.values
            sums = self._row(weights, [emitter.offset(row, offset) for offset in offsets], sums)
            left = emitter.sub(left, 1)
            is_last = emitter.compare(left, "==", 0)
            loop.carry(
                [
                    emitter.offset(weights, row_weights),
                    emitter.offset(row, emitter.select(is_last, next_channel, down)),
                    emitter.select(is_last, emitter.i64(height), left),
                    *sums,
                ]
            )
        return loop.results[3:]

    def _row(self, weights: Value, sources: list[Value], sums: list[Value]) -> list[Value]:
        """One row of the window, its taps unrolled."""
        emitter, lanes = self.emitter, self.lanes
        sums = list(sums)
        for tap in range(self.operation.kernel[1]):
            row = [
                emitter.load_floats(emitter.offset(weights, (tap * self.panel + block) * lanes), lanes)
                for block in range(self.panel)
            ]
            for number, source in enumerate(sources):
                place = emitter.offset(source, tap * self.operation.dilations[1])
                value = emitter.splat(emitter.load_floats(place, 1), lanes)
                for block in range(self.panel):
                    at = number * self.panel + block
                    sums[at] = emitter.multiply_add(row[block], value, sums[at])
        return sums
