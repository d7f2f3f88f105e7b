"""`glowstone demo`: read rendered lines of text and time ResNet-50."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from glowstone.cli.arguments import debug_option
from glowstone.cli.console import duration, messages, progress, results, table
from glowstone.cli.inspect import print_memory, print_stages
from glowstone.tools.demo import (
    STEPS,
    DigitsResult,
    RecognizerResult,
    ResNetResult,
    Step,
    read_digits,
    read_lines,
    time_resnet50,
)
from glowstone.tools.fetch import DownloadError


@click.command()
@debug_option
def demo() -> None:
    """Read rendered lines of text, then time ResNet-50, both compiled to machine code.

    Where the text recognizer cannot be downloaded, read handwritten digits with the classifier that is in the package.
    """
    console = results()
    with progress(STEPS) as step:
        recognized = _read(step)
        timed = time_resnet50(step)
    if isinstance(recognized, DigitsResult):
        _print_digits(console, recognized)
    else:
        _print_recognizer(console, recognized)
    _print_resnet50(console, timed)


def _read(step: Step) -> RecognizerResult | DigitsResult:
    """Lines of text, or digits where there is no network."""
    try:
        return read_lines(step)
    except DownloadError as error:
        messages().print(Text(f"{error.message}; reading digits instead"))
        return read_digits(step)


def _print_digits(console: Console, result: DigitsResult) -> None:
    """Print how many digits were read right, and how fast."""
    count = len(result.digits)
    console.print("[bold]digit classifier[/]")
    console.print(f"read right  {result.right} of {count} handwritten digits")
    console.print(f"each in     {duration(result.seconds / count)}")
    _print_compilation(console, result.report, result.compile_seconds)


def _print_recognizer(console: Console, result: RecognizerResult) -> None:
    """Print what was read, and how."""
    rows = [
        [line.text, line.read, line.width, duration(line.first_seconds), duration(line.seconds)]
        for line in result.lines
    ]
    numeric = ["width", "first run", "next run"]
    console.print(table("text recognizer", ["rendered", "read", *numeric], rows, numeric=numeric))
    _print_compilation(console, result.report, result.compile_seconds)


def _print_resnet50(console: Console, result: ResNetResult) -> None:
    """Print the time of one image, and what the compiler did."""
    figures = result.timing.as_dict()
    console.print("\n[bold]ResNet-50, one image of 224 x 224[/]")
    console.print(f"median      {duration(figures['latency_median_s'])} of {figures['count']:.0f} runs")
    console.print(f"minimum     {duration(figures['latency_minimum_s'])}")
    _print_compilation(console, result.report, result.compile_seconds)


def _print_compilation(console: Console, report: Mapping[str, Any], seconds: float) -> None:
    print_stages(console, report)
    print_memory(console, report)
    console.print(f"compiled    in {duration(seconds)}")
