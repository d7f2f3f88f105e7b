"""Which algorithm a dense convolution takes: by the target description and the reference shape, on cold weights.

In: channels, window and output extents. Out: whether Winograd's is estimated to win. Nothing here is measured at run
time, so the choice follows from the model, its reference shape and the target.
"""

from __future__ import annotations

from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.backends.cpu.winograd_transforms import KERNEL, POINTS, TILE

COLD_BYTES_PER_NANOSECOND = 10.0
"""Weights come from memory once per run."""
TRANSFORM_NANOSECONDS = 0.09
"""Per transformed number of a tile, input or output, at the width of an AVX2 register."""
REFERENCE_LANES = 8
LEAST_CHANNELS = 16
"""With fewer, transforms and padding lanes outweigh the products."""
SAFETY = 0.85
"""Winograd must be estimated this much faster: it takes more memory and rounds more."""


def prefers_winograd(inputs: int, outputs: int, images: int, height: int, width: int, target: Target) -> bool:
    """Whether F(4 x 4, 3 x 3) is estimated to beat the direct 3 x 3 convolution of stride 1.

    Args:
        inputs: input channels.
        outputs: output channels.
        images: batch extent.
        height: of the output.
        width: of the output.
        target: nominal speed and vector width.
    """
    if min(inputs, outputs) < LEAST_CHANNELS:
        return False
    tiles = max(images, 1) * -(-height // TILE) * -(-width // TILE)
    pixels = max(images, 1) * height * width
    points = POINTS * POINTS
    direct = _time(2.0 * KERNEL * KERNEL * inputs * outputs * pixels, KERNEL * KERNEL * inputs * outputs, target)
    products = _time(2.0 * points * inputs * outputs * tiles, points * inputs * outputs, target)
    transforms = TRANSFORM_NANOSECONDS * REFERENCE_LANES / target.float_lanes * points * tiles * (inputs + outputs)
    return products + transforms < SAFETY * direct


def _time(flops: float, weights: int, target: Target) -> float:
    """Nanoseconds: arithmetic at the nominal peak, or the weights from memory, whichever takes longer."""
    return max(flops / target.flops_per_nanosecond, weights * FLOAT_BYTES / COLD_BYTES_PER_NANOSECOND)
