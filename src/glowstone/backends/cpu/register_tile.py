"""The register tile of convolutions: how many output blocks and pixels one pass over the reduction keeps in registers.

In: a target and numbers of blocks. Out: blocks per panel (how weights are packed) and pixels per tile.
"""

from __future__ import annotations

from collections.abc import Iterable

from glowstone.backends.cpu.target import Target

WIDEST_PANEL = 4
MOST_PIXELS = 8
"""More pixels than this save no loads worth their code."""
LOADS_HIDDEN = 0.75
"""Loads per multiply-add that cost nothing: the load ports keep up."""
LOAD_COST = 0.4
"""Relative cost of a load per multiply-add beyond `LOADS_HIDDEN`."""


def pixels_per_tile(target: Target, panel: int) -> int:
    """Pixels whose `panel` accumulators each fit the registers beside `panel` weights and one broadcast input."""
    free = target.block_registers - 1 - panel
    return max(1, min(MOST_PIXELS, free // panel))


def blocks_per_panel(target: Target, out_blocks: int) -> int:
    """The cheapest panel for `out_blocks` blocks, padding of the last panel counted."""
    return _cheapest(target, out_blocks, range(1, min(WIDEST_PANEL, max(out_blocks, 1)) + 1))


def grouped_blocks_per_panel(target: Target, out_blocks: int) -> int:
    """As `blocks_per_panel`, but a divisor of the blocks of one group, as grouped convolutions need."""
    return _cheapest(target, out_blocks, [panel for panel in range(1, WIDEST_PANEL + 1) if out_blocks % panel == 0])


def _cheapest(target: Target, out_blocks: int, candidates: Iterable[int]) -> int:
    def cost(panel: int) -> tuple[float, float]:
        pixels = pixels_per_tile(target, panel)
        loads = (panel + pixels) / (panel * pixels)
        computed = -(-out_blocks // panel) * panel
        return computed * (1 + LOAD_COST * max(0.0, loads - LOADS_HIDDEN)), loads

    return min(candidates, key=cost)
