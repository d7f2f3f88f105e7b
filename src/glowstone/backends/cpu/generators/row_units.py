"""Loops over the units that `row_plan` planned, and over their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import Value


class RowUnits:
    """Emits the loops over units and their rows."""

    def __init__(self, emitter: Emitter, spatial: int) -> None:
        self._emitter = emitter
        self._spatial = spatial

    @contextmanager
    def rows(self) -> Iterator[tuple[Value, Value, Sequence[Value]]]:
        """The body runs for every (image, block, spatial coordinates but the last)."""
        emitter = self._emitter
        count, per_unit, parts = (emitter.derived(number) for number in range(3))
        with emitter.for_units() as units:
            plane, part = emitter.divmod(units.index, parts)
            image, block = emitter.divmod(plane, emitter.extent(0, 1))
            first = emitter.mul(part, per_unit)
            end = emitter.minimum(emitter.add(first, per_unit), count)
            with emitter.for_range(first, end) as rows:
                extents = [emitter.extent(0, 2 + axis) for axis in range(self._spatial - 1)]
                coordinates = emitter.unravel(rows.index, extents) if extents else []
                yield image, block, coordinates
