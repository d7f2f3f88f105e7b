"""`glowstone tune MODEL`: measure equivalent kernels on this machine and write a tuning file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from glowstone.api.machine import host_target, open_cache
from glowstone.cli.arguments import GivenShape, debug_option, model_argument, shape_option, unique
from glowstone.cli.console import duration, messages, results, table
from glowstone.options import Options
from glowstone.tools.tune import TunedCase, total_saved, tune_model


@click.command()
@model_argument
@shape_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The tuning file to write; MODEL with the ending .tuning.json by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with times in nanoseconds.")
@debug_option
def tune(model_path: Path, shapes: Sequence[GivenShape], output: Path | None, as_json: bool) -> None:
    """Measure kernels for MODEL on this machine, and write what is fastest for `compile(tuning=FILE)`.

    Nothing else should run meanwhile.
    """
    target = host_target(open_cache(Options.resolve()))
    file = output or model_path.with_suffix(".tuning.json")
    with messages().status("looking for convolutions and products") as status:
        tuning, cases = tune_model(
            model_path,
            unique(shapes, "--shape"),
            lambda number, count, text: status.update(f"{number} of {count}: {text}"),
        )
    tuning.write(file, target.text)
    if as_json:
        click.echo(json.dumps([{"case": asdict(one.case), **_figures(one)} for one in cases], indent=2))
        return
    print_cases(results(), cases)
    results().print(
        f"{len(tuning.choices)} of {len(cases)} cases in {file}, {duration(total_saved(cases) * 1e-9)} less"
    )


def print_cases(console: Console, cases: Sequence[TunedCase]) -> None:
    """Print a row for each case, those that save most first."""
    rows = [
        [
            one.case,
            one.count,
            duration(one.by_rule * 1e-9),
            duration(one.best * 1e-9),
            f"{one.by_rule / one.best:.2f}",
            one.choice or "as by the rules",
        ]
        for one in sorted(cases, key=lambda one: -one.saved)
    ]
    columns = ["case", "times", "by the rules", "best", "gain", "choice"]
    console.print(table("tuning, one thread, weights cold", columns, rows, numeric=columns[1:5]))


def _figures(one: TunedCase) -> dict[str, object]:
    choice = None if one.choice is None else asdict(one.choice)
    return {"count": one.count, "by_rule": one.by_rule, "best": one.best, "choice": choice}
