"""What surrounds the text-line recognizer: rendering lines, preparing images, decoding what the network says.

In: text. Out: images (height, width, 3) of uint8 in RGB; network input float32 (batch, 3, 48, width) in BGR within
[-1, 1]; and from the output float32 (batch, steps, classes) the text again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

INPUT_NAME: Final = "x"
HEIGHT: Final = 48
BLANK: Final = 0  # the class that separates repeated characters
_MARGIN: Final = 4  # pixels around rendered text
_WIDTH_STEP: Final = 8  # the network halves the width three times

Image = npt.NDArray[np.uint8]
Array = npt.NDArray[np.float32]

SAMPLE_LINES: Final = (
    "A network is a program",
    "from typed graph to machine code",
    "Lowered, fused, scheduled, planned",
    "One arena, one table of calls",
)


def read_characters(model: Path) -> tuple[str, ...]:
    """The character of every class, from the model's metadata: the blank first, then those listed, then the space."""
    import onnx

    metadata = {entry.key: entry.value for entry in onnx.load(model, load_external_data=False).metadata_props}
    return ("", *metadata["character"].splitlines(), " ")


def render_line(text: str, size: int = 32) -> Image:
    """Black text on white, in the font that Pillow ships; `size` is the font's height in pixels."""
    import PIL.Image
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size=size)
    left, top, right, bottom = (round(edge) for edge in font.getbbox(text))
    canvas = PIL.Image.new("RGB", (right - left + 2 * _MARGIN, bottom - top + 2 * _MARGIN), "white")
    ImageDraw.Draw(canvas).text((_MARGIN - left, _MARGIN - top), text, fill="black", font=font)
    return np.asarray(canvas, dtype=np.uint8)


def prepare(image: Image, width: int | None = None) -> Array:
    """One image as network input (1, 3, 48, width): scaled to the height with its proportions kept, then padded.

    Without `width` it is as wide as the scaled image needs. A wider image than `width` is squeezed.
    """
    import PIL.Image

    rows, columns, _ = image.shape
    natural = max(1, -(-columns * HEIGHT // rows))
    total = -(-natural // _WIDTH_STEP) * _WIDTH_STEP if width is None else width
    scaled = PIL.Image.fromarray(image).resize((min(natural, total), HEIGHT), PIL.Image.Resampling.BILINEAR)
    pixels = np.asarray(scaled, dtype=np.float32)[:, :, ::-1].transpose(2, 0, 1)
    prepared = np.zeros((1, 3, HEIGHT, total), np.float32)
    prepared[0, :, :, : pixels.shape[2]] = (pixels / np.float32(255) - np.float32(0.5)) / np.float32(0.5)
    return prepared


def decode(scores: Array, characters: Sequence[str]) -> list[str]:
    """The text of every batch entry: the best class of each step, repetitions merged, blanks dropped (greedy CTC)."""
    texts = []
    for best in scores.argmax(axis=2):
        changed = np.concatenate(([True], best[1:] != best[:-1]))
        texts.append("".join(characters[index] for index in best[changed & (best != BLANK)]))
    return texts
