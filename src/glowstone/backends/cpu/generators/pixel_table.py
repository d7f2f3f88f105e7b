"""Offsets of the pixels of a chunk, computed once and shared by all passes over its channels.

Pixels are numbered through all images: number = (image * height + y) * width + x. The table is kept in scratch. Its
rows have one i64 per pixel of the chunk: offset in y, offsets in extra operands with strides of their own, then for
every tap of the window the offset in x, or `OUTSIDE`, which stands for a block of zeros. Offsets are in elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.pixel_tiling import ENTRY_BYTES

OUTSIDE = -1


@dataclass(frozen=True)
class Window:
    """The window of a convolution; pairs are (vertical, horizontal)."""

    extents: tuple[Value, Value]
    strides: tuple[Value, Value]
    dilations: tuple[Value, Value]


@dataclass(frozen=True)
class TableMemory:
    """Where a table lies, and the pixels in one of its rows."""

    rows: Value
    capacity: Value


WriteTaps = Callable[[Value, Value, Value, Value], None]


class PixelTable:
    """Emits filling and reading of the table. Operand 0 is y, in [N, B, H, W, b]."""

    def __init__(self, emitter: Emitter, own_operands: Sequence[int], memory: TableMemory) -> None:
        self._emitter = emitter
        self._offset_operands = [0, *own_operands]
        self._memory = memory

    def row(self, number: Value | int, pixel: Value) -> Value:
        """Address of the entry of a pixel (counted from the chunk's first)."""
        emitter = self._emitter
        return emitter.offset(self._memory.rows, emitter.add(emitter.mul(number, self._memory.capacity), pixel), I64)

    def taps_row(self, pixel: Value) -> Value:
        """Address of the entry of the first tap; `next_tap` leads on from there."""
        return self.row(len(self._offset_operands), pixel)

    def end(self, taps: int) -> Value:
        """Address behind a table of so many taps."""
        return self.row(len(self._offset_operands) + taps, self._emitter.i64(0))

    def next_tap(self, entry: Value) -> Value:
        return self._emitter.offset(entry, self._memory.capacity, I64)

    def next_pixel(self, entry: Value, count: int = 1) -> Value:
        return self._emitter.offset(entry, count, I64)

    def output_offset(self, pixel: Value) -> Value:
        return self.read(self.row(0, pixel))

    def own_offsets(self, pixel: Value) -> dict[int, Value]:
        """Offsets in the extra operands with strides of their own."""
        return {
            operand: self.read(self.row(number, pixel))
            for number, operand in enumerate(self._offset_operands)
            if number > 0
        }

    def read(self, entry: Value) -> Value:
        """The offset in an entry."""
        return self._emitter.load(entry, I64, ENTRY_BYTES)

    def write(self, entry: Value, offset: Value) -> None:
        """Set an entry."""
        self._emitter.store(offset, entry, ENTRY_BYTES)

    def offset(self, operand: int, image: Value, y: Value, x: Value) -> Value:
        """Offset of a position in an operand of layout [N, B, H, W, b]."""
        emitter = self._emitter
        places = ((image, 0), (y, 2), (x, 3))
        terms = [emitter.mul(coordinate, emitter.stride(operand, axis)) for coordinate, axis in places]
        return emitter.add(emitter.add(terms[0], terms[1]), terms[2])

    def fill(self, first: Value, count: Value, write_taps: WriteTaps | None) -> None:
        """Compute the rows of `count` pixels from pixel number `first` on.

        `write_taps(entry, image, y, x)` writes the tap rows of one pixel, whose first entry is given; without it there
        are none.
        """
        emitter = self._emitter
        height, width = emitter.extent(0, 2), emitter.extent(0, 3)
        start = emitter.unravel(first, [emitter.extent(0, 0), height, width])
        with emitter.for_range(0, count, carried=start) as loop:
            image, y, x = loop.values
            for number, operand in enumerate(self._offset_operands):
                self.write(self.row(number, loop.index), self.offset(operand, image, y, x))
            if write_taps is not None:
                write_taps(self.taps_row(loop.index), image, y, x)
            next_x = emitter.add(x, 1)
            line_ends = emitter.compare(next_x, "==", width)
            next_y = emitter.select(line_ends, emitter.add(y, 1), y)
            image_ends = emitter.compare(next_y, "==", height)
            zero = I64(0)
            loop.carry(
                [
                    emitter.select(image_ends, emitter.add(image, 1), image),
                    emitter.select(image_ends, zero, next_y),
                    emitter.select(line_ends, zero, next_x),
                ]
            )


class TapRows:
    """Emits the tap rows of a convolution, and the addresses they lead to.

    Operand 1 is x, in [N, B, H, W, b]; run-time integers 0 and 1 are the padding above and to the left. With `inside`,
    no tap ever falls outside; else what does is read from `zeros`.
    """

    def __init__(self, emitter: Emitter, window: Window, table: PixelTable, zeros: Value, inside: bool) -> None:
        self._emitter = emitter
        self._window = window
        self._table = table
        self._zeros = zeros
        self._inside = inside

    def input_pointer(self, entry: Value, block: Value) -> Value:
        """Address of the input lanes of one pixel and tap; `block` is the address of the channel block."""
        emitter = self._emitter
        offset = emitter.load(entry, I64, ENTRY_BYTES)
        address = emitter.offset(block, offset)
        if self._inside:
            return address
        return emitter.select(emitter.compare(offset, "<", 0), self._zeros, address)

    def write(self, first: Value, image: Value, y: Value, x: Value) -> None:
        """The entries of one pixel, from the one of its first tap on."""
        emitter, window = self._emitter, self._window
        top = emitter.sub(emitter.mul(y, window.strides[0]), emitter.integer(0))
        left = emitter.sub(emitter.mul(x, window.strides[1]), emitter.integer(1))
        corner = self._table.offset(1, image, top, left)
        down = emitter.mul(emitter.stride(1, 2), window.dilations[0])
        right = emitter.mul(emitter.stride(1, 3), window.dilations[1])
        with emitter.for_range(0, window.extents[0], carried=[first, corner]) as rows:
            row = emitter.add(top, emitter.mul(rows.index, window.dilations[0]))
            with emitter.for_range(0, window.extents[1], carried=[rows.values[0], rows.values[1]]) as columns:
                entry, offset = columns.values
                column = emitter.add(left, emitter.mul(columns.index, window.dilations[1]))
                self._table.write(entry, self._checked(row, column, offset))
                columns.carry([self._table.next_tap(entry), emitter.add(offset, right)])
            rows.carry([columns.results[0], emitter.add(rows.values[1], down)])

    def _checked(self, row: Value, column: Value, offset: Value) -> Value:
        """The offset, or `OUTSIDE`."""
        if self._inside:
            return offset
        emitter = self._emitter
        # one unsigned comparison tells below 0 and beyond the end
        row_inside = emitter.builder.icmp_unsigned("<", row, emitter.extent(1, 2))
        column_inside = emitter.builder.icmp_unsigned("<", column, emitter.extent(1, 3))
        return emitter.select(emitter.both(row_inside, column_inside), offset, I64(OUTSIDE))
