"""Measures what the project promises and prints promise, limit and measured value.

Usage: python bench/figures.py [--only WORD] [--rounds N] [--seconds S] [--json FILE]

Every figure comes from fresh processes. Where engines are compared, each has a process of its own; they are driven in
turn, round by round, and the figure is the median over the rounds of the ratio within a round. Exit code 1 if a limit
is passed.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from driver import EngineProcess, interleaved, median_ratio, run_probe
from figure_models import Models, prepare_models

MEGABYTE = 1e6


@dataclass(frozen=True)
class Figure:
    """One promise: a measured value and the limit it keeps, both in `unit`; `at_least` turns the limit around."""

    promise: str
    limit: float
    measured: float
    unit: str = ""
    at_least: bool = False

    @property
    def is_kept(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


@dataclass(frozen=True)
class Bench:
    """What every measurement needs: the models, a cache folder of its own, and how long to measure."""

    models: Models
    cache: Path
    rounds: int
    seconds: float

    @property
    def environment(self) -> dict[str, str]:
        return {"GLOWSTONE_CACHE_DIR": str(self.cache)}

    def engine(self, engine: str, name: str, threads: int = 1) -> EngineProcess:
        return EngineProcess(engine, self.models.path(name), self.models.pool(name), threads, self.environment)

    def probe(self, measure: str, name: str) -> dict[str, float]:
        model, inputs = self.models.path(name), self.models.inputs(name)
        return run_probe("probe.py", measure, model, inputs, environment=self.environment)


def against_onnxruntime(bench: Bench) -> Iterator[Figure]:
    for name, limit in (("resnet50", 1.10), ("recognizer", 1.2)):
        with bench.engine("glowstone", name) as ours, bench.engine("onnxruntime", name) as theirs:
            rounds = interleaved([ours, theirs], bench.rounds, bench.seconds)
        yield Figure(f"{name}, one thread: time over ONNX Runtime's", limit, median_ratio(rounds, 0, 1))
        yield Figure(f"{name}, one thread: best time", float("inf"), min(min(row[0]) for row in rounds) * 1e3, "ms")


def two_threads(bench: Bench) -> Iterator[Figure]:
    with bench.engine("glowstone", "resnet50") as one, bench.engine("glowstone", "resnet50", 2) as two:
        rounds = interleaved([one, two], bench.rounds, bench.seconds)
        yield Figure("resnet50: one thread's time over two threads'", 1.8, median_ratio(rounds, 0, 1), at_least=True)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            rounds = interleaved([one, two], bench.rounds, bench.seconds)
        finally:
            busy.kill()
            busy.wait()
    yield Figure("resnet50 beside a busy process: two threads' time over one's", 1.15, median_ratio(rounds, 1, 0))


def compile_time(bench: Bench) -> Iterator[Figure]:
    cold, cached = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory(dir=bench.cache) as empty:
            model, inputs = bench.models.path("resnet50"), bench.models.inputs("resnet50")
            environment = {"GLOWSTONE_CACHE_DIR": empty}
            cold.append(run_probe("probe.py", "compile", model, inputs, environment=environment))
            cached.append(run_probe("probe.py", "compile", model, inputs, environment=environment))
    yield Figure("resnet50: compile with an empty cache", 6.0, statistics.median(one["compile_s"] for one in cold), "s")
    ratios = [one["runs_s"][0] / one["runs_s"][9] for one in cold]
    yield Figure("resnet50: first run over the tenth", 1.5, statistics.median(ratios))
    yield Figure("resnet50: compile from the cache", 0.4, statistics.median(one["compile_s"] for one in cached), "s")


def resident_memory(bench: Bench) -> Iterator[Figure]:
    used = {}
    with tempfile.TemporaryDirectory(dir=bench.cache) as empty:
        for case, engine in (("compiled", "glowstone"), ("cached", "glowstone"), ("peer", "onnxruntime")):
            model, pool = bench.models.path("resnet50"), bench.models.pool("resnet50")
            with EngineProcess(engine, model, pool, 1, {"GLOWSTONE_CACHE_DIR": empty}) as process:
                for _ in range(3):
                    process.latencies(0.0)
                used[case] = process.resident_bytes() / MEGABYTE
    yield Figure("resnet50 from the cache: memory over ONNX Runtime's", 5, used["cached"] - used["peer"], "MB")
    yield Figure("resnet50 compiled: memory over ONNX Runtime's", 60, used["compiled"] - used["peer"], "MB")


def planned_memory(bench: Bench) -> Iterator[Figure]:
    for name in ("resnet50", "recognizer", "encoder"):
        memory = bench.probe("memory", name)
        yield Figure(f"{name}: planned memory over its bound", 1.01, memory["arena_bytes"] / memory["bound_bytes"])
        if name == "resnet50":
            yield Figure("resnet50: planned memory", 10, memory["arena_bytes"] / MEGABYTE, "MB")


def new_shapes(bench: Bench) -> Iterator[Figure]:
    widths = (320, 160, 500, 64, 200, 328, 96, 640, 250, 411, 36, 72, 144, 288, 576, 100, 300, 33, 77, 480)
    shapes = [f"{batch}x3x48x{width}" for batch in (1, 3) for width in widths]
    model = bench.models.path("recognizer")
    found = run_probe("probe.py", "shapes", model, "x", *shapes, environment=bench.environment)
    yield Figure("recognizer: a new shape", 60, statistics.median(found["specialize_s"]) * 1e3, "ms")
    yield Figure(f"recognizer: templates for {len(shapes)} shapes", 3, found["templates"])
    yield Figure("recognizer: kernels compiled after the tenth new shape", 0, found["late_kernels"])


def call_overhead(bench: Bench) -> Iterator[Figure]:
    found = bench.probe("overhead", "tiny")
    yield Figure("one product of 1 x 16 by 16 x 16 through bind, kernel included", 2, found["bind_s"] * 1e6, "us")
    yield Figure("the same through run", 10, found["run_s"] * 1e6, "us")


MEASUREMENTS: tuple[Callable[[Bench], Iterator[Figure]], ...] = (
    against_onnxruntime,
    two_threads,
    compile_time,
    resident_memory,
    planned_memory,
    new_shapes,
    call_overhead,
)


def print_table(figures: list[Figure]) -> None:
    made = Table(
        "promise", "limit", "measured", "kept", title=f"{platform.machine()}, Python {platform.python_version()}"
    )
    for figure in figures:
        sign = ">=" if figure.at_least else "<="
        limit = "" if figure.limit == float("inf") else f"{sign} {figure.limit:g} {figure.unit}"
        made.add_row(figure.promise, limit, f"{figure.measured:.3g} {figure.unit}", "yes" if figure.is_kept else "NO")
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(made)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what the project promises.")
    parser.add_argument("--only", default="", help="only measurements with this word in their name")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of interleaved measurements")
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds of each engine's turn")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        cache.mkdir(mode=0o700)  # a folder that others may write is refused: it holds machine code
        bench = Bench(prepare_models(Path(folder)), cache, arguments.rounds, arguments.seconds)
        for measure in MEASUREMENTS:
            if arguments.only in measure.__name__:
                print(f"measuring {measure.__name__.replace('_', ' ')} ...", file=sys.stderr)
                figures.extend(measure(bench))
    print_table(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=2))
    return 0 if all(figure.is_kept for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
