"""`glowstone classify MODEL IMAGE...`: the best classes of image files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from glowstone.cli.arguments import debug_option, model_argument, threads_option
from glowstone.cli.console import progress, results
from glowstone.cli.images import image_options
from glowstone.tools import classification
from glowstone.tools.images import Preparation

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@model_argument
@click.argument("images", metavar="IMAGE...", type=_FILE, nargs=-1, required=True)
@image_options
@click.option("--labels", "labels_file", type=_FILE, help="File with the name of each class, one a line.")
@click.option("-k", "--top-k", "count", type=click.IntRange(min=1), default=5, show_default=True, help="Classes.")
@threads_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@debug_option
def classify(
    model_path: Path,
    images: Sequence[Path],
    preparation: Preparation,
    labels_file: Path | None,
    count: int,
    threads: int | None,
    as_json: bool,
) -> None:
    """Print the best classes of every IMAGE (PNG, JPEG or PPM) by MODEL."""
    labels = labels_file.read_text(encoding="utf-8").splitlines() if labels_file is not None else []
    found = []
    with progress(len(images)) as step:
        predictions = classification.classify(model_path, images, preparation, labels, count, threads)
        for path in images:
            step(path.name)
            found.append(next(predictions))
    if as_json:
        click.echo(json.dumps([{"image": str(one.image), "classes": list(map(asdict, one.guesses))} for one in found]))
        return
    console = results()
    for one in found:
        console.print(Text(str(one.image), "bold"), soft_wrap=True)
        for guess in one.guesses:
            console.print(Text(f"  {guess.score:10.4f}  {guess.label}"), soft_wrap=True)
