"""The command line `glowstone`: finds the command, turns errors into messages and exit codes.

Exit codes: 0 good, 1 failed or, for `compare`, different, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click
from rich.markup import escape

from glowstone import __version__
from glowstone.cli.arguments import Settings, debug_option
from glowstone.cli.console import messages
from glowstone.errors import GlowstoneError

GOOD: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130

COMMANDS: Final = ("demo", "run", "bench", "classify", "inspect", "export", "opt", "compare", "tune", "cache")
"""Each is a function of its own name in a module of its own name."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for: most need only a few of the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"glowstone.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="glowstone")
@debug_option
def command_line() -> None:
    """Compile neural networks to machine code, run them, time them and look inside."""


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
