"""`glowstone opt FILE.ir`: run passes by name on the text of a graph or program."""

from __future__ import annotations

from pathlib import Path

import click

from glowstone.cli.arguments import debug_option
from glowstone.tools.graph_stages import run_passes
from glowstone.tools.tensor_files import load_tensors, tensor_file

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", metavar="FILE.ir", type=_FILE)
@click.option("--passes", default="", metavar="NAME,NAME", help="Passes, in order; none only reads, checks and prints.")
@click.option("--tensors", type=_FILE, help="File .npz with the large constants; the one beside FILE by default.")
@click.option("-o", "--output", type=_FILE, help="File for the text; standard output by default.")
@debug_option
def opt(file: Path, passes: str, tensors: Path | None, output: Path | None) -> None:
    """Run passes on the text of a graph or a program, and print the text after them."""
    names = [name.strip() for name in passes.split(",") if name.strip()]
    text = run_passes(file.read_text(encoding="utf-8"), names, load_tensors(tensors or tensor_file(file)))
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
