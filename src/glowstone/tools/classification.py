"""Image classification: the best classes of each image.

In: a model with one image input whose first output has one score for each class, and image files. Out: `Prediction`s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import glowstone
from glowstone.errors import InputError
from glowstone.tools.images import Pixels, Preparation, frame_of, prepare, read_pixels
from glowstone.tools.input_files import InputPort, model_inputs

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Guess:
    """A class, its name and its score as the network gives it."""

    number: int
    label: str
    score: float


@dataclass(frozen=True)
class Prediction:
    """An image and its best classes, the best first."""

    image: Path
    guesses: tuple[Guess, ...]


def classify(
    model: Path,
    images: Sequence[Path],
    preparation: Preparation,
    labels: Sequence[str] = (),
    count: int = 5,
    threads: int | None = None,
) -> Iterator[Prediction]:
    """The `count` best classes of every image.

    Args:
        model: with one input.
        images: PNG, JPEG or PPM; scaled to the model's extents where those are fixed.
        preparation: how pixels become elements.
        labels: a name for each class; numbers where empty.
        count: of classes for each image.
        threads: of a run.

    Raises:
        InputError: the model takes no image, or has another number of classes than labels.
        GlowstoneError: an image cannot be read.
    """
    ports = model_inputs(model)
    if len(ports) != 1:
        raise InputError("a classifier has one input", found=", ".join(port.name for port in ports))
    (port,) = ports
    frame = frame_of(port.shape, preparation.layout)
    batch = port.shape[0] if len(port.shape) > 3 and isinstance(port.shape[0], int) else 1
    compiled: glowstone.Model | None = None
    for start in range(0, len(images), batch):
        paths = images[start : start + batch]
        inputs = _batch(port, [read_pixels(path, frame) for path in paths], preparation, batch)
        if compiled is None:
            compiled = glowstone.compile(model, shapes={port.name: inputs.shape}, threads=threads)
        scores = next(iter(compiled.run({port.name: inputs}).values()))
        for path, row in zip(paths, scores.reshape(batch, -1), strict=False):
            yield Prediction(path, best_classes(row, labels, count))


def _batch(port: InputPort, pixels: Sequence[Pixels], preparation: Preparation, batch: int) -> Array:
    """The images as the input wants them; a batch that is not full ends with zeros."""
    prepared = prepare(pixels, preparation, port.dtype)
    if len(port.shape) == prepared.ndim - 1:
        single: Array = prepared[0]
        return single
    padded = np.zeros((batch, *prepared.shape[1:]), port.dtype)
    padded[: len(prepared)] = prepared
    return padded


def best_classes(scores: Array, labels: Sequence[str], count: int) -> tuple[Guess, ...]:
    """The classes with the highest scores [classes]; the lower number first among equals.

    Raises:
        InputError: there is another number of labels than of classes.
    """
    if labels and len(labels) != scores.size:
        raise InputError("labels do not fit the classes", expected=f"{scores.size} labels", found=len(labels))
    order = np.argsort(-scores.astype(np.float64), kind="stable")[:count]
    return tuple(Guess(int(one), labels[one] if labels else str(one), float(scores[one])) for one in order)
