"""`glowstone cache info|clear`: what the cache of compiled models holds, and how to be rid of it."""

from __future__ import annotations

import json

import click
from rich.text import Text

from glowstone.cli.arguments import debug_option
from glowstone.cli.console import results, size
from glowstone.options import Options
from glowstone.tools.cache_folder import clear_folder, measure_folder


@click.group()
@debug_option
def cache() -> None:
    """Look at the cache of compiled models and kernels, or clear it."""


@cache.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@debug_option
def info(as_json: bool) -> None:
    """Print the cache's folder, its files, its bytes and its limit."""
    options = Options.resolve()
    usage = measure_folder(options.cache_folder())
    if as_json:
        report = {"folder": str(usage.folder), "files": usage.files, "bytes": usage.size}
        click.echo(json.dumps({**report, "limit_bytes": options.cache_limit_bytes}))
        return
    console = results()
    console.print(Text(f"folder  {usage.folder}"), soft_wrap=True)
    console.print(f"files   {usage.files}")
    console.print(f"size    {size(usage.size)} of {size(options.cache_limit_bytes)}")


@cache.command()
@debug_option
def clear() -> None:
    """Remove everything from the cache. Models that are loaded from it go on working."""
    usage = clear_folder(Options.resolve().cache_folder())
    results().print(f"removed {usage.files} files, {size(usage.size)}")
