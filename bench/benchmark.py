"""Compares the engines on the models of the benchmark: `make bench`.

Usage: python bench/benchmark.py [--models A,B] [--threads 1,2] [--peers A,B] [--rounds N] [--seconds S]
         [--form bind|run] [--tuning FOLDER] [--no-alone] [--benchmark-app] [--folder F] [--output F]

One process per engine, model and thread count; they are driven in turn while the others are blocked. Each peer's figure
is then checked alone: where it differs by more than 5 %, the rounds are repeated, up to three times, and if it still
does the table says so. Outputs must agree with ONNX Runtime's within 2e-4 of the largest value, or the engine is not
counted. Prints a table, and writes `benchmark.json` and `benchmark.svg`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from benchmark_models import MODELS, BenchmarkModel
from benchmark_table import plot, print_table
from driver import EngineError, EngineProcess, interleaved
from peers import PEERS, versions

OURS, TUNED, REFERENCE = "glowstone", "glowstone tuned", "onnxruntime"
AGREEMENT = 2e-4  # largest difference over the largest value
ALONE_TOLERANCE = 0.05
REPETITIONS = 3
APP_SECONDS = 5
MEGABYTE = 1e6


@dataclass
class Result:
    """One engine on one model with one number of threads; times in milliseconds."""

    engine: str
    median: float = math.nan
    minimum: float = math.nan
    alone: float = math.nan
    difference: float = math.nan
    """Largest difference from ONNX Runtime's outputs over their largest value."""
    load_s: float = math.nan
    resident_mb: float = math.nan
    peak_mb: float = math.nan
    note: str = ""
    """Why it is not counted, or what is doubtful."""
    counted: bool = True


@dataclass
class Row:
    """One model with one number of threads."""

    model: str
    threads: int
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The fastest counted peer's median over ours; NaN where there is none."""
        return self._ratio(OURS)

    @property
    def tuned_ratio(self) -> float:
        """The same with a tuning file."""
        return self._ratio(TUNED)

    @property
    def fastest_peer(self) -> str:
        peers = [result for name, result in self.results.items() if name in PEERS and result.counted]
        return min(peers, key=lambda result: result.median).engine if peers else ""

    def _ratio(self, name: str) -> float:
        peer, ours = self.fastest_peer, self.results.get(name)
        if not peer or ours is None or not ours.counted:
            return math.nan
        return self.results[peer].median / ours.median


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    folder: Path
    peers: Sequence[str]
    rounds: int
    seconds: float
    form: str
    alone: bool
    benchmark_app: bool
    tuning: Path | None

    @property
    def environment(self) -> Mapping[str, str]:
        return {"GLOWSTONE_CACHE_DIR": os.environ.get("GLOWSTONE_CACHE_DIR", str(self.folder / "cache"))}


def measure(model: BenchmarkModel, threads: int, settings: Settings) -> Row:
    """All engines on one model."""
    row = Row(model.name, threads)
    files = model.prepare(settings.folder)
    with ExitStack() as stack:
        processes = _start(row, files, settings, stack)
        _check_outputs(row, processes)
        running = {name: process for name, process in processes.items() if row.results[name].counted}
        for repetition in range(REPETITIONS):
            _time(row, running, settings)
            if not settings.alone or _check_alone(row, running, settings):
                break
            if repetition == REPETITIONS - 1:
                _note_unsteady(row)
    if settings.benchmark_app and "openvino" in row.results:
        _compare_with_app(row, files, settings)
    return row


def _start(
    row: Row, files: tuple[Path, Path, Path | None], settings: Settings, stack: ExitStack
) -> dict[str, EngineProcess]:
    model, pool, constants = files
    tuning = settings.tuning / f"{row.model}.json" if settings.tuning is not None else None
    wanted: list[tuple[str, str, Path | None]] = [(OURS, OURS, None), *((peer, peer, None) for peer in settings.peers)]
    if tuning is not None and tuning.exists():
        wanted.insert(1, (TUNED, OURS, tuning))
    processes = {}
    for name, engine, file in wanted:
        row.results[name] = result = Result(name)
        try:
            start = partial(EngineProcess, engine, model, pool, row.threads, settings.environment, constants, file)
            if engine == OURS:
                with start():  # compiles, so that what is measured was loaded from the cache
                    pass
            processes[name] = process = stack.enter_context(start())
            result.load_s = process.compile_seconds
            for _ in range(REPETITIONS):
                process.latencies(0.0, settings.form)
            result.resident_mb = process.resident_bytes() / MEGABYTE
            result.peak_mb = process.peak_bytes() / MEGABYTE
        except EngineError as failure:
            result.counted, result.note = False, f"cannot run it: {failure}"
            processes.pop(name, None)
    return processes


def _check_outputs(row: Row, processes: Mapping[str, EngineProcess]) -> None:
    expected = processes[REFERENCE].outputs()
    for name, process in processes.items():
        result = row.results[name]
        try:
            result.difference = _difference(process.outputs(), expected)
        except EngineError as failure:
            result.counted, result.note = False, f"cannot run it: {failure}"
            continue
        if not result.difference <= AGREEMENT:
            result.counted, result.note = False, f"outputs disagree by {result.difference:.1e}"


def _difference(outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Largest difference over the largest value, over all outputs; infinite where shapes differ."""
    worst = 0.0
    if len(outputs) != len(expected):
        return math.inf
    for output, wanted in zip(outputs, expected, strict=True):
        if output.size != wanted.size:
            return math.inf
        difference = np.abs(output.reshape(-1).astype(np.float64) - wanted.reshape(-1)).max(initial=0.0)
        worst = max(worst, float(difference / max(np.abs(wanted).max(initial=0.0), np.finfo(np.float32).tiny)))
    return worst


def _time(row: Row, running: Mapping[str, EngineProcess], settings: Settings) -> None:
    rounds = interleaved(list(running.values()), settings.rounds, settings.seconds, settings.form)
    for index, name in enumerate(running):
        calls = [latency for one in rounds for latency in one[index]]
        row.results[name].median = statistics.median(statistics.median(one[index]) for one in rounds) * 1e3
        row.results[name].minimum = min(calls) * 1e3


def _check_alone(row: Row, running: Mapping[str, EngineProcess], settings: Settings) -> bool:
    """Whether every peer is as fast when nothing else was driven before."""
    steady = True
    for name, process in running.items():
        result = row.results[name]
        turns = [statistics.median(process.latencies(settings.seconds, settings.form)) for _ in range(settings.rounds)]
        result.alone = statistics.median(turns) * 1e3
        steady = steady and abs(result.alone / result.median - 1) <= ALONE_TOLERANCE
    return steady


def _note_unsteady(row: Row) -> None:
    for result in row.results.values():
        if abs(result.alone / result.median - 1) > ALONE_TOLERANCE:
            result.note = f"alone {result.alone:.3g} ms"


def _compare_with_app(row: Row, files: tuple[Path, Path, Path | None], settings: Settings) -> None:
    """OpenVINO's own measuring program beside our figure for it."""
    _, pool, _ = files
    with np.load(pool) as stored:
        shapes = ",".join(f"{name}[{','.join(map(str, stored[name].shape[1:]))}]" for name in stored.files)
    command = [
        str(Path(sys.executable).with_name("benchmark_app")),
        *("-m", str(files[0]), "-d", "CPU", "-hint", "none", "-nstreams", "1", "-nthreads", str(row.threads)),
        *("-infer_precision", "f32", "-api", "sync", "-t", str(APP_SECONDS), "-shape", shapes),
    ]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line.split()[-2] for line in outcome.stdout.splitlines() if "Median:" in line]
    result = row.results["openvino"]
    result.note = (result.note + f" benchmark_app {found[0]} ms" if found else "benchmark_app failed").strip()


def geometric_mean(ratios: Sequence[float]) -> float:
    """Over the ratios that are numbers."""
    present = [ratio for ratio in ratios if not math.isnan(ratio)]
    return math.exp(statistics.fmean(map(math.log, present))) if present else math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the engines.")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="of each engine's turn")
    parser.add_argument("--form", choices=("bind", "run"), default="bind")
    parser.add_argument("--tuning", type=Path, help="a folder with a tuning file per model, for a second column")
    parser.add_argument("--no-alone", action="store_true", help="do not check the peers alone")
    parser.add_argument("--benchmark-app", action="store_true", help="also run OpenVINO's own measuring program")
    parser.add_argument("--folder", type=Path, help="keep built models here instead of building them each time")
    parser.add_argument("--output", type=Path, default=Path(), help="folder of benchmark.json and benchmark.svg")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        (folder / "cache").mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = Settings(
            folder,
            arguments.peers.split(","),
            arguments.rounds,
            arguments.seconds,
            arguments.form,
            not arguments.no_alone,
            arguments.benchmark_app,
            arguments.tuning,
        )
        for name in arguments.models.split(","):
            for threads in map(int, arguments.threads.split(",")):
                print(f"measuring {name} on {threads} ...", file=sys.stderr)
                rows.append(measure(MODELS[name], threads, settings))
    means = {threads: geometric_mean([row.ratio for row in rows if row.threads == threads]) for threads in (1, 2)}
    print_table(rows, means)
    machine = {"machine": platform.machine(), "python": platform.python_version(), "versions": versions()}
    content = {"machine": machine, "form": arguments.form, "rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "benchmark.json").write_text(json.dumps(content, indent=2) + "\n")
    plot(rows, arguments.output / "benchmark.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
