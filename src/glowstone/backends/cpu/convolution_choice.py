"""Which algorithm a dense convolution takes: by the target description and the reference shape, on cold weights.

In: channels, window and output extents. Out: whether Winograd's is estimated to win, and with which tile. Nothing is
measured, so the choice follows from the model, its reference shape and the target.
"""

from __future__ import annotations

from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.backends.cpu.winograd_transforms import FILTERINGS, KERNEL, MinimalFiltering

COLD_BYTES_PER_NANOSECOND = 10.0
"""Weights come from memory once per run."""
HIDDEN = 0.7
"""Share of the shorter of arithmetic and reading that goes on behind the longer."""
TRANSFORM_NANOSECONDS = 0.09
"""Per transformed number of a tile, input or output, at the width of an AVX2 register."""
REFERENCE_LANES = 8
LEAST_CHANNELS = 16
"""With fewer, transforms and padding lanes outweigh the products."""
GAIN = 0.9
"""What takes more memory for its weights, and rounds more, must be estimated to take at most this share of the time."""


def winograd_tile(inputs: int, outputs: int, images: int, height: int, width: int, target: Target) -> int | None:
    """The tile that is estimated to beat the smaller ones and the direct 3 x 3 convolution; None for the direct.

    Args:
        inputs: input channels.
        outputs: output channels.
        images: batch extent.
        height: of the output.
        width: of the output.
        target: nominal speed and vector width.
    """
    if min(inputs, outputs) < LEAST_CHANNELS:
        return None
    window = KERNEL * KERNEL * inputs * outputs
    time, best = _time(2.0 * window * max(images, 1) * height * width, window, target), None
    for tile, form in sorted(FILTERINGS.items()):
        other = _winograd_time(form, inputs, outputs, max(images, 1) * form.tiles(height, width), target)
        if other < GAIN * time:
            time, best = other, tile
    return best


def _winograd_time(form: MinimalFiltering, inputs: int, outputs: int, tiles: int, target: Target) -> float:
    """Nanoseconds of the products and of the transforms."""
    weights = form.products * inputs * outputs
    transformed = form.products * tiles * (inputs + outputs)
    transforms = TRANSFORM_NANOSECONDS * REFERENCE_LANES / target.float_lanes * transformed
    return _time(2.0 * weights * tiles, weights, target) + transforms


def _time(flops: float, weights: int, target: Target) -> float:
    """Nanoseconds: arithmetic at the nominal peak, the weights from memory, and what of them does not overlap."""
    arithmetic, reading = flops / target.flops_per_nanosecond, weights * FLOAT_BYTES / COLD_BYTES_PER_NANOSECOND
    return max(arithmetic, reading) + (1 - HIDDEN) * min(arithmetic, reading)
