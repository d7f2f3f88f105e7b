"""`glowstone demo`: read rendered lines of text and time ResNet-50."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console

from glowstone.cli.arguments import debug_option
from glowstone.cli.console import duration, progress, results, table
from glowstone.cli.inspect import print_memory, print_stages
from glowstone.tools.demo import STEPS, RecognizerResult, ResNetResult, read_lines, time_resnet50


@click.command()
@debug_option
def demo() -> None:
    """Read rendered lines of text, then time ResNet-50, both compiled to machine code."""
    with progress(STEPS) as step:
        recognized = read_lines(step)
        timed = time_resnet50(step)
    console = results()
    _print_recognizer(console, recognized)
    _print_resnet50(console, timed)


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
