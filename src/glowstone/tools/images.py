"""Image files as inputs of a network.

In: files (PNG, JPEG, PPM), and how the network wants its pixels. Out: one array for the batch. Pillow reads the files.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from glowstone.errors import GlowstoneError, InputError

Array = np.ndarray[Any, np.dtype[Any]]
Pixels = np.ndarray[Any, np.dtype[np.uint8]]

FORMATS: Final = ("PNG", "JPEG", "PPM")
SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pnm"})
LAYOUTS: Final = ("NCHW", "NHWC")
ORDERS: Final = ("RGB", "BGR")
LARGEST_PIXEL: Final = 255
_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class Preparation:
    """From pixels 0 to 255 to what a network takes: (pixel * scale - mean) / std, channel by channel.

    `scale` None stands for 1 / 255, and for 1 where the network takes integers. `mean` and `std` have one number for
    all channels, or one for each in the order of the network. `order` is of channels, `layout` of axes.
    """

    scale: float | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    order: str = "RGB"
    layout: str = "NCHW"


@dataclass(frozen=True)
class Frame:
    """What a network's input says of an image; None where it is open."""

    channels: int
    height: int | None
    width: int | None


def frame_of(shape: Sequence[int | str | None], layout: str) -> Frame:
    """The frame of an input of rank 4, or 3 without a batch.

    Raises:
        InputError: it has another rank, or an open number of channels.
    """
    axes = dict(zip(reversed(layout), reversed(list(shape)), strict=False))
    channels = axes.get("C")
    if len(shape) not in (3, 4) or channels not in _MODES:
        raise InputError(
            "the input is no image",
            expected=f"{layout} with 1, 3 or 4 channels",
            found=list(shape),
            remedy="choose the other layout, or give the input as an array",
        )
    height, width = (axes[axis] if isinstance(axes[axis], int) else None for axis in "HW")
    return Frame(int(channels), height, width)  # type: ignore[arg-type]


def read_pixels(path: Path, frame: Frame) -> Pixels:
    """The pixels [height, width, channels] of a file, scaled to the frame where that is fixed.

    Raises:
        GlowstoneError: Pillow is missing, or the file is no such image.
    """
    if importlib.util.find_spec("PIL") is None:
        raise GlowstoneError("images are read with Pillow, which is missing", remedy="pip install glowstone[image]")
    import PIL.Image

    try:
        with PIL.Image.open(path, formats=FORMATS) as opened:
            image = opened.convert(_MODES[frame.channels])
    except (OSError, SyntaxError, ValueError) as error:
        raise GlowstoneError(
            "the image cannot be read", file=str(path), expected=", ".join(FORMATS), found=str(error)
        ) from error
    wanted = (frame.width or image.width, frame.height or image.height)
    if image.size != wanted:
        image = image.resize(wanted, PIL.Image.Resampling.BILINEAR)
    return np.asarray(image, np.uint8).reshape(image.height, image.width, frame.channels)


def prepare(pixels: Sequence[Pixels], preparation: Preparation, dtype: np.dtype[Any]) -> Array:
    """Images of one size as a batch of rank 4 in the preparation's layout.

    Raises:
        InputError: the sizes differ, or `mean` or `std` have another number of channels.
    """
    if len({image.shape for image in pixels}) != 1:
        raise InputError("the images of a batch have different sizes", found=[image.shape for image in pixels])
    batch = np.stack(pixels).astype(np.float64)
    if preparation.order == "BGR":
        batch[..., :3] = batch[..., 2::-1].copy()
    is_integer = dtype.kind in "iu"
    scale = preparation.scale if preparation.scale is not None else 1.0 if is_integer else 1 / LARGEST_PIXEL
    batch = (batch * scale - _per_channel(preparation.mean, batch, "mean")) / _per_channel(
        preparation.std, batch, "std"
    )
    if is_integer:
        limits = np.iinfo(dtype)
        batch = np.clip(np.rint(batch), limits.min, limits.max)
    if preparation.layout == "NCHW":
        batch = batch.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(batch.astype(dtype))


def _per_channel(numbers: Sequence[float], batch: Array, name: str) -> Array:
    if len(numbers) not in (1, batch.shape[-1]):
        raise InputError(f"{name} has another number of channels", expected=batch.shape[-1], found=len(numbers))
    return np.array(numbers, np.float64)
