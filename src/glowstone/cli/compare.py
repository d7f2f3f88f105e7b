"""`glowstone compare MODEL`: run a model in two ways and name the first value that differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from glowstone.cli.arguments import GivenShape, debug_option, model_argument, parse_file, shape_option, unique
from glowstone.cli.console import progress, results
from glowstone.tools.arrays import save_arrays
from glowstone.tools.compare import Comparison, Part, compare_model, load_whole
from glowstone.tools.input_files import complete_shapes, model_inputs, read_inputs

AGREE = 0
DIFFER = 1
BACKENDS = ("cpu", "interpreter")
REFERENCES = ("interpreter", "evaluator", "onnxruntime")


@click.command()
@model_argument
@shape_option
@click.option("--backend", type=click.Choice(BACKENDS), default="cpu", show_default=True, help="What is tested.")
@click.option(
    "--reference", type=click.Choice(REFERENCES), default="interpreter", show_default=True, help="What is right."
)
@click.option(
    "-i",
    "--input",
    "inputs",
    type=parse_file,
    metavar="[NAME=]FILE",
    multiple=True,
    help="An input and its file, or an .npz with all; random numbers by default.",
)
@click.option(
    "--tolerance", type=click.FloatRange(min=0.0), help="What floats may differ by, as a part of the largest value."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File .onnx for the smallest part that differs; its inputs go beside it as .npz.",
)
@debug_option
def compare(
    model_path: Path,
    shapes: Sequence[GivenShape],
    backend: str,
    reference: str,
    inputs: Sequence[tuple[str, Path]],
    tolerance: float | None,
    output: Path | None,
) -> int:
    """Run MODEL in two ways and name the first value that differs. Exit code 1 where one does.

    Against the interpreter every instruction is compared, against the others the values of the ONNX model.
    """
    if backend == reference:
        raise click.UsageError("--backend and --reference are the same")
    files = unique(inputs, "--input")
    with progress(2) as step:
        step("reading")
        model = load_whole(model_path)
        arrays = read_inputs(model_inputs(model), files, complete_shapes(model, unique(shapes, "--shape")))
        step("comparing")
        found = compare_model(model, arrays, backend, reference, tolerance)
    _print(found, backend, reference)
    if found.part is not None and output is not None:
        _save(found.part, output)
    return AGREE if found.difference is None else DIFFER


def _print(found: Comparison, backend: str, reference: str) -> None:
    """Print how much agrees, or what differs first."""
    console = results()
    if found.difference is None:
        console.print(f"{backend} and {reference} agree: {found.compared} compared")
        return
    one = found.difference
    console.print(Text(f"first difference  {one.value}", "bold"), soft_wrap=True)
    console.print(Text(f"computed by       {one.source}"), soft_wrap=True)
    console.print(f"differs by        {one.amount:.3g} of the largest value, allowed {one.allowed:.3g}")


def _save(part: Part, path: Path) -> None:
    """Write the part and, beside it, its inputs."""
    arrays = path.with_suffix(".npz")
    path.write_bytes(part.model.SerializeToString(deterministic=True))
    save_arrays(arrays, part.inputs)
    nodes = len(part.model.graph.node)
    results().print(Text(f"written           {path} ({nodes} nodes), {arrays}"), soft_wrap=True)
