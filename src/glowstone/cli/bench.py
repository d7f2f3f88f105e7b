"""`glowstone bench MODEL`: compile a model, run it again and again, print latency and throughput."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy.typing as npt

import glowstone
from glowstone.cli.arguments import GivenShape, debug_option, model_argument, shape_option, threads_option, unique
from glowstone.cli.console import duration, progress, results
from glowstone.errors import UnsupportedError
from glowstone.tools.benchmark import missing_shapes, random_inputs, time_calls
from glowstone.tools.input_files import complete_shapes
from glowstone.tools.inspection import declared_inputs
from glowstone.tools.trace import trace_model


@click.command()
@model_argument
@shape_option
@threads_option
@click.option("-t", "--seconds", type=click.FloatRange(min=0.0), help="Seconds to measure; 5 by default.")
@click.option("-n", "--iterations", type=click.IntRange(min=1), help="Calls to measure.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with times in seconds.")
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File .json for the time of every instruction, in Chrome's trace format.",
)
@debug_option
def bench(
    model_path: Path,
    shapes: Sequence[GivenShape],
    threads: int | None,
    seconds: float | None,
    iterations: int | None,
    as_json: bool,
    trace: Path | None,
) -> None:
    """Time MODEL on random inputs."""
    given = unique(shapes, "--shape")
    if seconds is None and iterations is None:
        seconds = 5.0
    with progress(4) as step:
        step("reading")
        complete = complete_shapes(model_path, given)
        missing = missing_shapes(declared_inputs(model_path), complete)
        if missing:
            names = ", ".join(one.name for one in missing)
            example = ",".join(map(str, missing[0].shape))
            raise click.UsageError(f"give the shape of {names}: --shape {missing[0].name}={example} with numbers")
        step("compiling")
        begin = time.perf_counter()
        model = glowstone.compile(model_path, shapes=given or None, threads=threads)
        inputs = random_inputs(model.inputs, complete)
        call = _prepared(model, inputs)
        compile_seconds = time.perf_counter() - begin
        step("warming up and measuring")
        timing = time_calls(call, seconds, iterations)
        if trace is not None:
            step("tracing")
            trace.write_text(json.dumps(trace_model(model, inputs), indent=1), encoding="utf-8")
    figures = {"compile_s": compile_seconds, **timing.as_dict()}
    if as_json:
        click.echo(json.dumps(figures))
    else:
        _print_figures(figures)


def _prepared(model: glowstone.Model, inputs: Mapping[str, npt.NDArray[Any]]) -> Callable[[], object]:
    """A call with everything compiled that it needs."""
    try:
        return model.bind(inputs)
    except UnsupportedError:  # shapes depend on data: the first run compiles
        model.run(inputs)
        return partial(model.run, inputs)


def _print_figures(figures: Mapping[str, float]) -> None:
    """Print count, duration, latency and throughput, one a line."""
    console = results()
    console.print(f"compile     {duration(figures['compile_s'])}")
    console.print(f"count       {figures['count']:.0f} iterations")
    console.print(f"duration    {duration(figures['duration_s'])}")
    console.print("latency")
    for name in ("median", "average", "minimum", "maximum"):
        console.print(f"  {name:<9} {duration(figures[f'latency_{name}_s'])}")
    console.print(f"throughput  {figures['throughput_per_s']:.2f} per second")
