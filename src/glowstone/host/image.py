"""ImageDecoder, by Pillow, which is an optional dependency."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from glowstone.errors import ModelError, UnsupportedError
from glowstone.host.registry import Array, HostNode, HostValue, Kind, array_at, runs_on_host

FORMATS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")
MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
"""Pillow's mode for each of ONNX's pixel formats."""
MOST_PIXELS = 1 << 26


@runs_on_host("ImageDecoder")
def decode_image(node: HostNode, operands: Sequence[HostValue]) -> Array:
    """[height, width, channels] of u8; of no extent where the bytes are no image.

    Raises:
        UnsupportedError: Pillow is not installed.
    """
    encoded, pixels = array_at(node, operands, 0), node.attribute("pixel_format", Kind.TEXT, "RGB")
    if pixels not in MODES:
        raise ModelError("attribute pixel_format is unknown", expected=", ".join(MODES), found=pixels)
    try:
        from PIL import Image
    except ImportError as error:
        raise UnsupportedError("images are decoded by Pillow", remedy="pip install glowstone[image]") from error
    channels = 1 if pixels == "Grayscale" else 3
    try:
        with Image.open(io.BytesIO(encoded.tobytes()), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                return np.zeros((0, 0, channels), np.uint8)
            decoded = np.array(image.convert(MODES[pixels]), np.uint8)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # what Pillow raises of broken files
        return np.zeros((0, 0, channels), np.uint8)
    shaped = decoded.reshape(*decoded.shape[:2], channels)
    return np.ascontiguousarray(shaped[:, :, ::-1] if pixels == "BGR" else shaped)
