"""Direct convolution on channel blocks.

A tile of pixels times a panel of output blocks is accumulated in registers over the whole reduction, then goes through
the epilogue and is stored once. Weights stream in the order in which they are packed; inputs are broadcast lane by
lane from addresses in a `PixelTable`, so that padding, strides and row ends cost nothing in the inner loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.kernels.epilogue import Epilogue, PixelOffsets, extra_kinds
from glowstone.backends.cpu.kernels.pixel_table import PixelTable, Window, table_bytes
from glowstone.backends.cpu.kernels.pixel_tiles import (
    TilingValues,
    plan_tiling,
    smallest_full_tile,
    switch_on_count,
)
from glowstone.backends.cpu.operations.blocked import BlockedConvolution
from glowstone.backends.cpu.register_tile import pixels_per_tile
from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.table import KernelCall
from glowstone.types import ElementType

POINT, WINDOW = "point", "window"
INSIDE, PADDED = "inside", "padded"
Y, X, W = 0, 1, 2


@emits(BlockedConvolution)
class BlockedConvolutionFamily(KernelFamily):
    """Variant: point or window (is the kernel 1 x 1), inside or padded (may taps fall outside), kinds of extras."""

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
        steps = in_blocks * taps * lanes_in
        touched = in_blocks * lanes_in * operation.strides[0] * operation.strides[1]
        tiling = plan_tiling(
            pixels,
            pixels_per_tile(target, panel),
            panels // operation.groups,
            panel_bytes=steps * panel * lanes_out * FLOAT_BYTES,
            pixel_bytes=touched * FLOAT_BYTES,
            rows=1 + len(kinds) + taps,
        )
        spans = operation.groups * -(-(panels // operation.groups) // tiling.span)
        flops = 2.0 * pixels * steps * panels * panel * lanes_out
        return KernelCall(
            KernelKey.of(instruction, variant),
            units=spans * tiling.chunks if pixels else 0,
            scratch=table_bytes(taps, len(kinds), tiling.capacity),
            cost=target.cost(flops, FLOAT_BYTES * (y.size + x.size + w.size)),
            derived=tiling.derived,
        )

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        _Kernel(key, target, emitter).emit()


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
class _Panel:
    """Where one weight panel stands: its first weight, the first input block's address, its first output block."""

    weights: Value
    inputs: Value
    first_block: Value


class _Kernel:
    """Emits one kernel."""

    def __init__(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        self.operation = cast(BlockedConvolution, key.operation)
        self.emitter = emitter
        self.lanes = target.channel_block
        self.panel = self.operation.tile
        self.most = pixels_per_tile(target, self.panel)
        self.is_point = key.variant[0] == POINT
        kinds = tuple(str(kind) for kind in key.variant[2:])
        self.epilogue = Epilogue(emitter, self.operation.epilogue, kinds, self.lanes)
        window = Window(emitter.extent(W, 2), emitter.extent(W, 3), self.operation.strides, self.operation.dilations)
        self.tiling = TilingValues(emitter)
        self.taps = emitter.mul(window.height, window.width)
        self.table = PixelTable(
            emitter, window, self.epilogue.own_operands, self.tiling.capacity, inside=key.variant[1] == INSIDE
        )

    def emit(self) -> None:
        """Units are (group, span of its panels, chunk), chunks fastest: a span's weights serve all its chunks."""
        emitter, tiling = self.emitter, self.tiling
        group_panels = emitter.div(emitter.extent(W, 0), self.operation.groups)
        spans = emitter.div(emitter.add(group_panels, emitter.sub(tiling.span, 1)), tiling.span)
        with emitter.for_units() as units:
            numbered, chunk = emitter.divmod(units.index, tiling.chunks)
            group, span = emitter.divmod(numbered, spans)
            first_tile = emitter.mul(chunk, tiling.chunk)
            end_tile = emitter.minimum(emitter.add(first_tile, tiling.chunk), tiling.tiles)
            first_pixel = tiling.first_pixel(first_tile)
            self.table.fill(first_pixel, emitter.sub(tiling.first_pixel(end_tile), first_pixel))
            first_panel = emitter.mul(span, tiling.span)
            end_panel = emitter.minimum(emitter.add(first_panel, tiling.span), group_panels)
            with emitter.for_range(first_panel, end_panel) as panels:
                panel = self._panel(group, emitter.add(emitter.mul(group, group_panels), panels.index))
                with emitter.for_range(first_tile, end_tile) as tiles:
                    start = tiling.first_pixel(tiles.index)
                    count = emitter.sub(tiling.first_pixel(emitter.add(tiles.index, 1)), start)
                    self._tile(panel, emitter.sub(start, first_pixel), count)

    def _panel(self, group: Value, number: Value) -> _Panel:
        emitter = self.emitter
        first_input = emitter.mul(group, emitter.extent(W, 1))
        steps = emitter.mul(emitter.mul(emitter.extent(W, 1), self.taps), self.lanes)
        return _Panel(
            emitter.offset(emitter.pointer(W), emitter.mul(number, emitter.mul(steps, self.panel * self.lanes))),
            emitter.offset(emitter.pointer(X), emitter.mul(first_input, emitter.stride(X, 1))),
            emitter.mul(number, self.panel),
        )

    def _tile(self, panel: _Panel, pixel: Value, count: Value) -> None:
        """One tile of `count` pixels, by code for exactly that count."""
        sizes = sorted({1, *range(smallest_full_tile(self.most), self.most + 1)})
        with switch_on_count(self.emitter, count, sizes) as rounds:
            for size in rounds:
                self._store(panel, pixel, self._accumulate(panel, pixel, size))

    def _accumulate(self, panel: _Panel, pixel: Value, size: int) -> list[Value]:
        """Sums of `size` pixels by the panel's blocks, pixel-major.

        Input blocks and taps are one loop: every loop end costs a mispredicted branch.
        """
        emitter = self.emitter
        first = self.table.taps_row(pixel)
        steps = emitter.extent(W, 1) if self.is_point else emitter.mul(emitter.extent(W, 1), self.taps)
        sums = [emitter.zeros(self.lanes)] * (size * self.panel)
        state = [panel.weights, panel.inputs, first, self.taps, *sums]
        with emitter.for_range(0, steps, carried=state) as loop:
            weights, inputs, entry, left, *sums = loop.values
            sums = self._tap(weights, inputs, entry, sums, size)
            following = self._next_step(inputs, entry, left, first)
            loop.carry([emitter.offset(weights, self.lanes * self.panel * self.lanes), *following, *sums])
        return loop.results[4:]

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

    def _tap(
        self, weights: Value, inputs: Value, entry: Value, sums: list[Value], size: int
    ) -> list[Value]:
        """One tap of one input block: all its lanes, unrolled."""
        emitter, lanes = self.emitter, self.lanes
        sums = list(sums)
        sources = [
            self.table.input_pointer(self.table.next_pixel(entry, number), inputs) for number in range(size)
        ]
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

    def _store(self, panel: _Panel, pixel: Value, sums: list[Value]) -> None:
        emitter = self.emitter
        pixels = [emitter.add(pixel, number) for number in range(len(sums) // self.panel)]
        offsets = [PixelOffsets(self.table.output_offset(at), self.table.own_offsets(at)) for at in pixels]
        for number in range(self.panel):
            block = emitter.add(panel.first_block, number)
            with emitter.if_true(emitter.compare(block, "<", emitter.extent(Y, 1)), likely=True):
                epilogue = self.epilogue.block(block)
                for position, offset in enumerate(offsets):
                    epilogue.store(sums[position * self.panel + number], offset)
