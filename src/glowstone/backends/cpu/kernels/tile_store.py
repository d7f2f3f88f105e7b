"""The end of a tile of a convolution: epilogue and store of a panel of output blocks for some pixels."""

from __future__ import annotations

from collections.abc import Sequence

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernels.epilogue import Epilogue, PixelOffsets
from glowstone.backends.cpu.kernels.pixel_table import PixelTable


def store_tile(
    emitter: Emitter,
    epilogue: Epilogue,
    table: PixelTable,
    first_block: Value,
    pixel: Value,
    sums: Sequence[Value],
    panel: int,
) -> None:
    """Store sums (pixel-major) of `panel` output blocks from `first_block` on; blocks that do not exist are left out.

    `pixel` is the number of the tile's first pixel in the table.
    """
    pixels = [emitter.add(pixel, number) for number in range(len(sums) // panel)]
    offsets = [PixelOffsets(table.output_offset(at), table.own_offsets(at)) for at in pixels]
    for number in range(panel):
        block = emitter.add(first_block, number)
        with emitter.if_true(emitter.compare(block, "<", emitter.extent(0, 1)), likely=True):
            stored = epilogue.block(block)
            for position, offset in enumerate(offsets):
                stored.store(sums[position * panel + number], offset)
