"""`glowstone export MODEL`: write the graph at a stage as ONNX or as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from glowstone.cli.arguments import GivenShape, debug_option, model_argument, shape_option, unique
from glowstone.cli.console import progress, results
from glowstone.exporter import DOMAIN, export_graph
from glowstone.graph import Graph, named_tensors, print_graph
from glowstone.tools.graph_stages import STAGES, graph_at_stage
from glowstone.tools.tensor_files import save_tensors, tensor_file

_TEXT = ".ir"


@click.command()
@model_argument
@shape_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File .onnx, or .ir for text, with its large constants beside it as .npz.",
)
@click.option("--stage", type=click.Choice(STAGES), default="compiled", show_default=True, help="How far to go.")
@debug_option
def export(model_path: Path, shapes: Sequence[GivenShape], output: Path, stage: str) -> None:
    """Write the graph of MODEL at a stage.

    Operators that ONNX has stay standard operators; fused and packed ones are in the domain "glowstone". At the stage
    "canonical" there are none of those, so other programs can run the file.
    """
    with progress(2) as step:
        step("optimizing")
        graph = graph_at_stage(model_path, unique(shapes, "--shape"), stage)
        step("writing")
        summary = _write_text(graph, output) if output.suffix == _TEXT else _write_onnx(graph, output)
    results().print(Text(f"{output}  {summary}"), soft_wrap=True)


def _write_text(graph: Graph, path: Path) -> str:
    path.write_text(print_graph(graph), encoding="utf-8")
    save_tensors(tensor_file(path), named_tensors(graph))
    return f"{len(graph.nodes)} nodes"


def _write_onnx(graph: Graph, path: Path) -> str:
    model = export_graph(graph)
    path.write_bytes(model.SerializeToString(deterministic=True))
    own = sum(node.domain == DOMAIN for node in model.graph.node)
    return f"{len(model.graph.node)} nodes, {own} of them in the domain {DOMAIN}"
