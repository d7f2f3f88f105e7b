"""Options that say how the pixels of an image become the elements of an input."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from glowstone.tools.images import LAYOUTS, ORDERS, Preparation


def parse_numbers(_: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    """Numbers with commas between."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not of the form 0.485,0.456,0.406", param=option) from error


def image_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options --scale, --mean, --std, --order and --layout, as one argument `preparation`."""

    @functools.wraps(function)
    def with_preparation(*arguments: Any, **options: Any) -> Any:
        names = ("scale", "mean", "std", "order", "layout")
        preparation = Preparation(**{name: options.pop(name) for name in names})
        return function(*arguments, preparation=preparation, **options)

    options = (
        click.option("--scale", type=float, help="Factor of pixels; 1/255 by default, 1 for integers."),
        click.option("--mean", callback=parse_numbers, default="0", help="Taken off each channel, in its order."),
        click.option("--std", callback=parse_numbers, default="1", help="What each channel is then divided by."),
        click.option("--order", type=click.Choice(ORDERS), default="RGB", show_default=True, help="Channels."),
        click.option("--layout", type=click.Choice(LAYOUTS), default="NCHW", show_default=True, help="Axes."),
    )
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), with_preparation)
