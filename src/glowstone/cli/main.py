"""The command line `glowstone`: finds the command, turns errors into messages and exit codes.

Exit codes: 0 good, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click
from rich.markup import escape

from glowstone import __version__
from glowstone.cli.arguments import Settings, debug_option
from glowstone.cli.bench import bench
from glowstone.cli.cache import cache
from glowstone.cli.classify import classify
from glowstone.cli.compare import compare
from glowstone.cli.console import messages
from glowstone.cli.demo import demo
from glowstone.cli.export import export
from glowstone.cli.inspect import inspect
from glowstone.cli.opt import opt
from glowstone.cli.run import run
from glowstone.errors import GlowstoneError

GOOD: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="glowstone")
@debug_option
def command_line() -> None:
    """Compile neural networks to machine code, run them, time them and look inside."""


for _command in (demo, run, bench, classify, inspect, export, opt, compare, cache):
    command_line.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (`sys.argv` if None) and return its exit code; the entry point passes it to `sys.exit`."""
    settings = Settings()
    try:
        code = command_line.main(arguments, prog_name="glowstone", standalone_mode=False, obj=settings)
    except click.UsageError as error:
        error.show()
        return WRONG_USAGE
    except click.Abort:
        messages().print("interrupted")
        return INTERRUPTED
    except Exception as error:  # the last resort of a command line: whatever went wrong is told in one message
        return _report(error, settings)
    return code if isinstance(code, int) else GOOD


def _report(error: Exception, settings: Settings) -> int:
    """Tell what went wrong, with a traceback where --debug asked for it."""
    if settings.debug:
        traceback.print_exception(error)
    if isinstance(error, GlowstoneError):
        text = str(error)
    elif isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, OSError):
        text = f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
    else:
        text = f"{type(error).__name__}: {error}\n  remedy: run again with --debug and report what it shows"
    messages().print(f"[bold red]error:[/] {escape(text)}", soft_wrap=True)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
