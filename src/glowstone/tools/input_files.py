"""Inputs of a model from files: .npy, .npz, images, and raw elements.

In: what the model declares, and a file by input name. Out: an array by input name. Inputs without a file may be filled
with random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glowstone import importer
from glowstone.errors import InputError, ShapeError
from glowstone.support.model_source import ModelSource
from glowstone.tools.arrays import ALL_INPUTS
from glowstone.tools.benchmark import missing_shapes, random_inputs
from glowstone.tools.images import SUFFIXES, Preparation, frame_of, prepare, read_pixels
from glowstone.types import Dimension, GivenShapes, Shape, resolve_shapes

Array = np.ndarray[Any, np.dtype[Any]]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class InputPort:
    """An input as the model declares it; a symbolic dimension is a text."""

    name: str
    shape: tuple[Dimension, ...]
    dtype: np.dtype[Any]


def model_inputs(model: ModelSource) -> list[InputPort]:
    """The inputs of a model file.

    Raises:
        ModelError: it is no model.
        UnsupportedError: an input has no rank or an element type that is not there.
    """
    declared = importer.declared_inputs(importer.open_model(model))
    return [InputPort(name, dimensions, element.dtype) for name, (element, dimensions) in declared.items()]


def complete_shapes(model: ModelSource, given: GivenShapes) -> dict[str, Shape]:
    """The shapes of inputs that follow from shapes and extents of symbolic dimensions.

    Raises:
        ModelError: the file is not an ONNX model.
        ShapeError: what was given does not fit the model.
    """
    if not given:
        return {}
    inputs, _ = importer.declared_ports(importer.open_model(model))
    return resolve_shapes(given, {port.name: port.dimensions for port in inputs}).shapes


def read_inputs(
    ports: Sequence[InputPort], files: Mapping[str, Path], shapes: Shapes, preparation: Preparation | None = None
) -> dict[str, Array]:
    """An array for every input: from its file, else seeded random numbers.

    Raises:
        InputError: as `read_files`; or an input has neither file nor shape.
    """
    given = read_files(ports, files, shapes, preparation)
    left = [port for port in ports if port.name not in given]
    missing = missing_shapes(left, shapes)
    if missing:
        example = ",".join(map(str, missing[0].shape))
        raise InputError(
            f"the shape of input {missing[0].name!r} is open",
            expected=example,
            remedy=f"give a file, or --shape {missing[0].name}={example} with numbers",
        )
    return {**given, **random_inputs(left, shapes)}


def read_files(
    ports: Sequence[InputPort], files: Mapping[str, Path], shapes: Shapes, preparation: Preparation | None = None
) -> dict[str, Array]:
    """An array for every input that a file is given for. `shapes` are those of raw files.

    An .npz file under the name "" gives all inputs that it has an array for.

    Raises:
        InputError: a name that no input has, or a file that does not fit.
        GlowstoneError: an image that cannot be read.
        OSError: a file cannot be read.
    """
    by_name = {port.name: port for port in ports}
    arrays = _load_all(files[ALL_INPUTS]) if ALL_INPUTS in files else {}
    single = {name: file for name, file in files.items() if name != ALL_INPUTS}
    for name in (*arrays, *single, *shapes):
        if name not in by_name:
            raise InputError("no input of this name", expected=", ".join(by_name), found=name)
    return arrays | {
        name: read_input(by_name[name], file, shapes.get(name), preparation or Preparation())
        for name, file in single.items()
    }


def read_input(port: InputPort, file: Path, shape: tuple[int, ...] | None, preparation: Preparation) -> Array:
    """The array of one input, by the ending of the file: .npy, .npz, an image, anything else raw elements.

    Args:
        port: the input.
        file: its file.
        shape: of raw elements; that of the model where None, with at most one open extent.
        preparation: how pixels of an image become elements.

    Raises:
        InputError: the file does not fit the input.
        GlowstoneError: it is no such image, or Pillow is missing.
        OSError: it cannot be read.
    """
    suffix = file.suffix.lower()
    if suffix == ".npy":
        array: Array = _load(file)
        return array
    if suffix == ".npz":
        return _from_archive(port.name, file)
    if suffix in SUFFIXES:
        frame = frame_of(port.shape, preparation.layout)
        batch = prepare([read_pixels(file, frame)], preparation, port.dtype)
        return batch if len(port.shape) == batch.ndim else batch[0]
    return _raw(port, file, port.shape if shape is None else shape)


def _load(file: Path) -> Any:
    """What NumPy finds in a file; Python objects in it are refused."""
    try:
        return np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{file} is no NumPy file", found=str(error)) from error


def _load_all(file: Path) -> dict[str, Array]:
    """Every array of an archive, by name."""
    with _load(file) as archive:
        return {name: archive[name] for name in archive.files}


def _from_archive(name: str, file: Path) -> Array:
    """The array of the input's name, or the only one."""
    with _load(file) as archive:
        names = list(archive.files)
        chosen = name if name in names else names[0] if len(names) == 1 else None
        if chosen is None:
            raise InputError(f"{file} has no array {name!r}", expected=name, found=", ".join(names))
        array: Array = archive[chosen]
    return array


def _raw(port: InputPort, file: Path, dimensions: Sequence[Dimension]) -> Array:
    """Little-endian elements in row-major order; an open extent follows from the length of the file."""
    content = np.fromfile(file, np.uint8)
    known = [extent for extent in dimensions if isinstance(extent, int)]
    row = math.prod(known) * port.dtype.itemsize
    count = len(dimensions) - len(known)
    if count > 1 or (count == 1 and (row == 0 or content.size % row)) or (count == 0 and content.size != row):
        raise ShapeError(
            f"{file} does not fit input {port.name!r}",
            expected=f"{port.dtype}{list(dimensions)}" + (" with one open extent at most" if count > 1 else ""),
            found=f"{content.size} bytes",
            remedy="give the shape of raw files with --shape",
        )
    shape = tuple(extent if isinstance(extent, int) else content.size // row for extent in dimensions)
    return content.view(port.dtype.newbyteorder("<")).astype(port.dtype, copy=False).reshape(shape)
