"""Tiles and tilings inside a kernel: the values that `pixel_tiling` planned, and code by size of tile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import I64, Value
from glowstone.backends.cpu.pixel_tiling import Tiling


@dataclass(frozen=True)
class BalancedTiles:
    """Tiles of `pixels` pixels each, the first `longer` of them with one more."""

    emitter: Emitter
    pixels: Value
    longer: Value

    def first_pixel(self, tile: Value) -> Value:
        """Number of a tile's first pixel."""
        emitter = self.emitter
        return emitter.add(emitter.mul(tile, self.pixels), emitter.minimum(tile, self.longer))

    def count(self, tile: Value) -> Value:
        """Pixels of a tile."""
        emitter = self.emitter
        return emitter.add(self.pixels, emitter.builder.zext(emitter.compare(tile, "<", self.longer), I64))


class TilingValues:
    """The numbers of a `Tiling` as values in a kernel."""

    def __init__(self, emitter: Emitter) -> None:
        values = {field.name: emitter.derived(number) for number, field in enumerate(fields(Tiling))}
        self.balanced = BalancedTiles(emitter, values["pixels"], values["longer"])
        self.tiles, self.chunk, self.chunks = values["tiles"], values["chunk"], values["chunks"]
        self.span, self.capacity = values["span"], values["capacity"]
        self.slice, self.slices = values["slice"], values["slices"]


@contextmanager
def switch_on_count(emitter: Emitter, count: Value, sizes: list[int]) -> Iterator[Iterator[int]]:
    """Iterate over `sizes`: what is emitted in each round runs where `count` is that size."""
    builder = emitter.builder
    done = builder.append_basic_block("tile_done")
    switch = builder.switch(count, done)

    def rounds() -> Iterator[int]:
        for size in sizes:
            block = builder.append_basic_block(f"tile_{size}")
            switch.add_case(emitter.i64(size), block)
            builder.position_at_end(block)
            yield size
            builder.branch(done)

    yield rounds()
    builder.position_at_end(done)
