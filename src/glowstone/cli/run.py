"""`glowstone run MODEL`: run a model once on arrays and images from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy.typing as npt

import glowstone
from glowstone.cli.arguments import (
    GivenShape,
    debug_option,
    model_argument,
    parse_file,
    shape_option,
    threads_option,
    unique,
)
from glowstone.cli.console import progress, results, table
from glowstone.cli.images import image_options
from glowstone.tools.arrays import flat_arrays, save_arrays
from glowstone.tools.images import Preparation
from glowstone.tools.input_files import complete_shapes, model_inputs, read_files


@click.command()
@model_argument
@click.option(
    "-i",
    "--input",
    "inputs",
    type=parse_file,
    metavar="[NAME=]FILE",
    multiple=True,
    help="An input and its file: .npy, .npz, PNG, JPEG, PPM, or raw elements; or an .npz with all. May be repeated.",
)
@shape_option
@image_options
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File .npz for the outputs, by name."
)
@threads_option
@debug_option
def run(
    model_path: Path,
    inputs: Sequence[tuple[str, Path]],
    shapes: Sequence[GivenShape],
    preparation: Preparation,
    output: Path | None,
    threads: int | None,
) -> None:
    """Run MODEL once and print what its outputs are.

    --shape gives the shapes of raw files; --scale, --mean, --std, --order and --layout say how images become elements.
    """
    with progress(3) as step:
        step("reading")
        complete = complete_shapes(model_path, unique(shapes, "--shape"))
        arrays = read_files(model_inputs(model_path), unique(inputs, "--input"), complete, preparation)
        step("compiling")
        model = glowstone.compile(
            model_path, shapes={name: array.shape for name, array in arrays.items()}, threads=threads
        )
        step("running")
        outputs = flat_arrays(model.run(arrays))
    if output is not None:
        save_arrays(output, outputs)
    results().print(_summary(outputs))


def _summary(outputs: Mapping[str, npt.NDArray[Any]]) -> Any:
    rows = []
    for name, array in outputs.items():
        is_measured = array.size and array.dtype.kind != "O"
        extremes = (
            [f"{value:.6g}" for value in (array.min(), array.max(), array.mean())] if is_measured else ["", "", ""]
        )
        rows.append([name, array.dtype, "x".join(map(str, array.shape)) or "scalar", *extremes])
    columns = ["output", "type", "shape", "minimum", "maximum", "mean"]
    return table("outputs", columns, rows, numeric=columns[3:])
