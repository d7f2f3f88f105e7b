"""The input rows of a stem convolution, copied into scratch between zeros, so that no tap falls outside."""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import F32, Value

X = 1


@dataclass(frozen=True)
class PaddedInput:
    """The copy [channels, rows, pitch] at `memory`."""

    emitter: Emitter
    memory: Value
    channels: int
    rows: Value
    pitch: Value

    def fill(self, image: Value, first_row: Value) -> None:
        """Copy the rows from input row `first_row` on (negative above the input); column 0 is at -pad left."""
        emitter = self.emitter
        source = emitter.strided(emitter.pointer(X), F32, (image, emitter.stride(X, 0)))
        with emitter.for_range(0, self.channels) as channels:
            plane = emitter.strided(source, F32, (channels.index, emitter.stride(X, 1)))
            with emitter.for_range(0, self.rows) as rows:
                number = emitter.add(emitter.mul(channels.index, self.rows), rows.index)
                target = emitter.offset(self.memory, emitter.mul(number, self.pitch))
                row = emitter.add(first_row, rows.index)
                inside = emitter.builder.icmp_unsigned("<", row, emitter.extent(X, 2))
                with emitter.if_else(inside) as (copied, empty):
                    with copied:
                        self._copy(target, emitter.strided(plane, F32, (row, emitter.stride(X, 2))))
                    with empty:
                        self._clear(target, emitter.i64(0), self.pitch)

    def _copy(self, target: Value, source: Value) -> None:
        emitter = self.emitter
        left = emitter.minimum(emitter.integer(1), self.pitch)
        right = emitter.minimum(emitter.add(left, emitter.extent(X, 3)), self.pitch)
        self._clear(target, emitter.i64(0), left)
        with emitter.for_range(left, right) as columns:
            value = emitter.load_floats(emitter.offset(source, emitter.sub(columns.index, left)), 1)
            emitter.store_floats(value, emitter.offset(target, columns.index))
        self._clear(target, right, self.pitch)

    def _clear(self, target: Value, first: Value, end: Value) -> None:
        emitter = self.emitter
        with emitter.for_range(first, end) as columns:
            emitter.store_floats(emitter.f32(0.0), emitter.offset(target, columns.index))
