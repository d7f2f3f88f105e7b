"""The end of a tile of a convolution: epilogue and store of a panel of output blocks for some pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.block_epilogue import BlockEpilogue, Epilogue, PixelOffsets
from glowstone.backends.cpu.generators.pixel_table import PixelTable
from glowstone.backends.cpu.ir_types import Value

WIDEST_GROUP = 4
"""Vectors of a long epilogue side by side: what sixteen registers hold."""


@dataclass(frozen=True)
class TileStore:
    """Emits the stores of one kernel. Sums are pixel-major: of `panel` blocks of `lanes` channels for each pixel.

    A short epilogue is emitted for each vector of sums (`store`). Of a long one there is a single copy
    (`uses_memory`): code for each size of tile saves its sums, and a loop behind stores them (`store_saved`).
    """

    emitter: Emitter
    epilogue: Epilogue
    table: PixelTable
    panel: int
    lanes: int
    most: int
    """Pixels of a whole tile."""

    @property
    def uses_memory(self) -> bool:
        return self.epilogue.is_long

    def save(self, sums: Sequence[Value], memory: Value) -> None:
        """Write sums to memory."""
        for position, value in enumerate(sums):
            self.emitter.store_floats(value, self.emitter.offset(memory, position * self.lanes))

    def load(self, memory: Value, size: int) -> list[Value]:
        """The sums of `size` pixels from memory."""
        places = [self.emitter.offset(memory, position * self.lanes) for position in range(size * self.panel)]
        return [self.emitter.load_floats(place, self.lanes) for place in places]

    def store(self, first_block: Value, pixel: Value, sums: Sequence[Value]) -> None:
        """Store sums of the blocks from `first_block` on; those that do not exist are left out.

        `pixel` is the number of the tile's first pixel in the table.
        """
        count = len(sums) // self.panel
        offsets = [self._offsets(self.emitter.add(pixel, number)) for number in range(count)]

        def emit(number: int, stored: BlockEpilogue) -> None:
            for position, offset in enumerate(offsets):
                stored.store(sums[position * self.panel + number], offset)

        self._for_blocks(first_block, emit)

    def store_saved(self, first_block: Value, pixel: Value, count: Value, memory: Value) -> None:
        """As `store`, for the sums of `count` pixels in memory: a few at a time, the last one as often as it takes."""
        emitter = self.emitter
        last = emitter.sub(count, 1)

        def emit(number: int, stored: BlockEpilogue) -> None:
            with emitter.for_range(0, count, self.group) as pixels:
                places = [emitter.minimum(emitter.add(pixels.index, ahead), last) for ahead in range(self.group)]
                positions = [emitter.add(emitter.mul(place, self.panel), number) for place in places]
                rows = [emitter.offset(memory, emitter.mul(position, self.lanes)) for position in positions]
                sums = [emitter.load_floats(row, self.lanes) for row in rows]
                stored.store_group(sums, [self._offsets(emitter.add(pixel, place)) for place in places])

        self._for_blocks(first_block, emit)

    @property
    def group(self) -> int:
        """Pixels at a time in `store_saved`: a divisor of the pixels of a whole tile."""
        return max(size for size in range(1, WIDEST_GROUP + 1) if self.most % size == 0)

    def _for_blocks(self, first_block: Value, emit: Callable[[int, BlockEpilogue], None]) -> None:
        emitter = self.emitter
        for number in range(self.panel):
            block = emitter.add(first_block, number)
            with emitter.if_true(emitter.compare(block, "<", emitter.extent(0, 1)), likely=True):
                emit(number, self.epilogue.block(block))

    def _offsets(self, pixel: Value) -> PixelOffsets:
        return PixelOffsets(self.table.output_offset(pixel), self.table.own_offsets(pixel))
