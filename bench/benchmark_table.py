"""The benchmark's table on the terminal, and its plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from peers import PEERS

if TYPE_CHECKING:
    from benchmark import Result, Row

WIDTH = 170


def print_table(rows: Sequence[Row], means: Mapping[int, float]) -> None:
    """Median and least milliseconds of every engine, and the fastest peer's median over ours."""
    table = Table("model", "threads", "ours", *PEERS, "fastest peer / ours", "tuned", "memory, MB (peak)", "notes")
    for row in rows:
        ours = row.results["glowstone"]
        table.add_row(
            row.model,
            str(row.threads),
            _times(ours),
            *(_times(row.results.get(peer)) for peer in PEERS),
            _number(row.ratio),
            _number(row.tuned_ratio),
            " / ".join(_memory(row.results.get(name)) for name in ("glowstone", "onnxruntime")),
            "; ".join(f"{result.engine}: {result.note}" for result in row.results.values() if result.note),
        )
    for threads, mean in means.items():
        if not math.isnan(mean):
            table.add_row("geometric mean", str(threads), *[""] * (1 + len(PEERS)), _number(mean), "", "", "")
    console = Console()
    (console if console.is_terminal else Console(width=WIDTH)).print(table)


def plot(rows: Sequence[Row], file: Path) -> None:
    """Bars of the fastest peer's time over ours."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "glowstone"
    figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
    threads = sorted({row.threads for row in rows})
    names = list(dict.fromkeys(row.model for row in rows))
    width = 0.8 / len(threads)
    for index, count in enumerate(threads):
        ratios = {row.model: row.ratio for row in rows if row.threads == count}
        places = [place + index * width for place in range(len(names))]
        axes.bar(places, [ratios.get(name, math.nan) for name in names], width, label=f"{count} threads")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(names))], names, rotation=30, ha="right")
    axes.set_ylabel("fastest peer's time over ours")
    axes.legend()
    figure.savefig(file, metadata={"Date": None})


def _times(result: Result | None) -> str:
    if result is None or math.isnan(result.median):
        return "-"
    return f"{_milliseconds(result.median)} ({_milliseconds(result.minimum)})"


def _milliseconds(value: float) -> str:
    return f"{value:.4f}" if value < 1 else f"{value:.2f}"


def _memory(result: Result | None) -> str:
    return (
        "-" if result is None or math.isnan(result.resident_mb) else f"{result.resident_mb:.0f} ({result.peak_mb:.0f})"
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
