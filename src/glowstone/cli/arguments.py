"""Reading the parts of a command line that click has no type for: NAME=SHAPE and NAME=FILE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from glowstone.tools.arrays import ALL_INPUTS
from glowstone.types import Dimension

Function = TypeVar("Function", bound=Callable[..., Any])

GivenShape = tuple[str, tuple[Dimension, ...]]
"""An input with its shape, or a symbolic dimension with its extent."""

ARCHIVE_SUFFIX = ".npz"
_NUMBERS = re.compile(r"\d+(x\d+)+")
_SYMBOL = re.compile(r"[^\W\d][^=,\s]*")


@dataclass
class Settings:
    """What holds for the whole command line."""

    debug: bool = False


def parse_shape(argument: str) -> GivenShape:
    """The shape of an input: x=1,3,48,320 or x=1x3x48x320 or x=1,3,height,width; x= alone is a scalar.

    The extent of a symbolic dimension reads like the shape of an input: height=48.
    """
    name, separator, text = argument.rpartition("=")
    if _NUMBERS.fullmatch(text):
        text = text.replace("x", ",")
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not separator or not name or not all(part.isdecimal() or _SYMBOL.fullmatch(part) for part in parts):
        raise click.BadParameter(f"{argument!r} is not of the form x=1,3,48,320 or batch=4")
    return name, tuple(int(part) if part.isdecimal() else part for part in parts)


def parse_file(argument: str) -> tuple[str, Path]:
    """The file of an input: x=file.npy; file.npz alone has all inputs, under their names."""
    name, separator, file = argument.partition("=")
    if not separator and argument.endswith(ARCHIVE_SUFFIX):
        return ALL_INPUTS, Path(argument)
    if not separator or not name or not file:
        raise click.BadParameter(f"{argument!r} is not of the form x=file.npy or file.npz")
    return name, Path(file)


def unique(pairs: Iterable[tuple[str, Any]], option: str) -> dict[str, Any]:
    """The pairs as a dictionary; a name that is given twice is a usage error."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise click.UsageError(f"{option} names {name!r} twice")
        found[name] = value
    return found


def model_argument(function: Function) -> Function:
    """The argument MODEL, an ONNX file."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.argument("model_path", metavar="MODEL", type=kind)(function)


def shape_option(function: Function) -> Function:
    """The option --shape, which may be repeated."""
    text = (
        "Shape of an input, such as x=1,3,48,320, or extent of a symbolic dimension, such as batch=4. May be repeated."
    )
    option = click.option("--shape", "shapes", type=parse_shape, metavar="NAME=SHAPE", multiple=True, help=text)
    return option(function)


def threads_option(function: Function) -> Function:
    """The option --threads."""
    text = "Threads of a run; by default the physical cores that this process may use."
    return click.option("--threads", type=click.IntRange(min=1), help=text)(function)


def debug_option(function: Function) -> Function:
    """The option --debug, good before and after the command's name."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        settings = context.ensure_object(Settings)
        settings.debug = settings.debug or value

    text = "Show the whole traceback of an error."
    return click.option("--debug", is_flag=True, expose_value=False, callback=remember, help=text)(function)
