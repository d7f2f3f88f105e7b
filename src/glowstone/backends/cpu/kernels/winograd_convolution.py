"""Winograd convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from glowstone.backends.cpu.extra_operands import extra_kinds
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.operations.winograd import WinogradConvolution
from glowstone.backends.cpu.product_tile import ProductTile
from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.backends.cpu.winograd_transforms import FILTERINGS
from glowstone.lir.instruction import Instruction
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

MOST_TILES = 48
"""Tiles of a unit: every transformed weight is read once for so many."""
FEWEST_TILES = 12
FEWEST_UNITS = 4
"""So many units let a few threads share small images, at the price of transforming inputs again."""
FEWEST_CHANNELS = 128
"""Output channels of a unit: fewer would not be worth transforming the inputs again."""
LINE_FLOATS = 16
"""Floats of a cache line."""


@dataclass(frozen=True)
class TileDivision:
    """How the tiles of one image and the panels of output channels are divided into units."""

    tiles: int
    panels: int
    blocks: int
    groups: int

    @staticmethod
    def of(tiles: int, panels: int, panel: int, images: int) -> TileDivision:
        """Blocks of tiles first, then groups of channels, then smaller blocks, until there are enough units."""
        blocks, groups = max(1, -(-tiles // MOST_TILES)), 1
        while images * blocks * groups < FEWEST_UNITS:
            if panels * panel >= 2 * groups * FEWEST_CHANNELS:
                groups *= 2
            elif tiles >= 2 * blocks * FEWEST_TILES:
                blocks *= 2
            else:
                break
        per_block, per_group = -(-tiles // blocks), -(-panels // groups)
        return TileDivision(per_block, per_group, -(-tiles // max(per_block, 1)), -(-panels // max(per_group, 1)))


@emits(WinogradConvolution)
class WinogradFamily(KernelFamily):
    """Variant: kinds of extras. Derived: columns of tiles, tiles of an image, and the division into units."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        y, x, u = instruction.operands[:3]
        images, _, height, width, _ = y.shape
        _, panels, depth, panel = u.shape
        form = FILTERINGS[cast(WinogradConvolution, instruction.operation).tile]
        columns, tiles = -(-width // form.tile), form.tiles(height, width)
        division = TileDivision.of(tiles, panels, panel, max(images, 1))
        flops = 2.0 * images * tiles * u.size
        return KernelCall(
            KernelKey.of(instruction, extra_kinds(instruction)),
            units=images * division.blocks * division.groups if tiles else 0,
            scratch=scratch_floats(form.products, division, depth, panel) * FLOAT_BYTES,
            cost=target.cost(flops, FLOAT_BYTES * (y.size + x.size + u.size)),
            derived=(columns, tiles, division.tiles, division.blocks, division.panels, division.groups),
        )

    def tile(self, instruction: Instruction, target: Target) -> str:
        side, panel = cast(WinogradConvolution, instruction.operation).tile, instruction.operands[2].shape[3]
        return f"{ProductTile.of(target, panel).rows} tiles of {side} x {side} pixels x {panel} channels"

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.winograd import WinogradGenerator

        WinogradGenerator(key, target, emitter).emit()


def scratch_floats(points: int, division: TileDivision, depth: int, panel: int) -> int:
    """Transformed inputs and sums of one unit."""
    return division.tiles * (points * (depth + division.panels * panel) + 2 * LINE_FLOATS)
