"""The consoles and progress bars of the command line: results on standard output, the rest on standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH: Final = 160  # columns of tables where standard output is not a terminal


def results() -> Console:
    """The console for results. Made anew at each use, so that it follows a redirected `sys.stdout`."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def messages() -> Console:
    """The console for progress and errors."""
    return Console(stderr=True, highlight=False)


@contextlib.contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """A progress bar of a number of steps; call what it yields with the name of each step as it begins.

    It is on standard error and vanishes when done. Nothing is shown where that is not a terminal.
    """
    console = messages()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=steps)
        begun = False

        def step(name: str) -> None:
            nonlocal begun
            bar.update(task, description=name, advance=1 if begun else 0)
            begun = True

        yield step


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], numeric: Sequence[str] = ()) -> Table:
    """A table with the named columns; those in `numeric` stand to the right. Cells are shown as they are."""
    made = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    return made


def duration(seconds: float) -> str:
    """A duration with a unit that suits it: '1.234 s', '12.3 ms', '45.6 us'."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def size(count: int) -> str:
    """A number of bytes with a unit that suits it: '512 B', '1.5 KiB', '97.7 MiB'."""
    scaled = float(count)
    for unit in ("B", "KiB", "MiB"):
        if scaled < 1024:
            return f"{scaled:.4g} {unit}"
        scaled /= 1024
    return f"{scaled:.4g} GiB"
