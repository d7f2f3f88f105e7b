"""Drives engines in processes of their own, in turn, and compares them round by round."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).resolve().parent
PAUSE_SECONDS = 0.05  # between two engines: threads of the first stop spinning


class EngineProcess:
    """A running `engine.py`. A context manager: the process ends with the block."""

    def __init__(
        self, engine: str, model: Path, inputs: Path, threads: int = 1, environment: Mapping[str, str] | None = None
    ) -> None:
        command = [sys.executable, str(HERE / "engine.py"), engine, str(model), str(inputs), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
        self.name = f"{engine} {threads}"
        self.compile_seconds = float(self._answer()["compile_s"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, seconds: float) -> list[float]:
        """Latencies in seconds of calls in a row."""
        return [float(latency) for latency in self._ask(f"run {seconds}")["latencies"]]

    def resident_bytes(self) -> int:
        return int(self._ask("rss")["rss"])

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"an engine ended with code {self._process.wait()}; its message is above")
        result: dict[str, Any] = json.loads(line)
        return result


def interleaved(engines: Sequence[EngineProcess], rounds: int, seconds: float) -> list[list[float]]:
    """Best latency of every engine in every round: [round][engine], in seconds. Each round drives all in turn."""
    for engine in engines:
        engine.run(seconds / 2)
    found = []
    for _ in range(rounds):
        row = []
        for engine in engines:
            row.append(min(engine.run(seconds)))
            time.sleep(PAUSE_SECONDS)
        found.append(row)
    return found


def median_ratio(rounds: Sequence[Sequence[float]], numerator: int, denominator: int) -> float:
    """Median over the rounds of the ratio of two engines' latencies."""
    return statistics.median(row[numerator] / row[denominator] for row in rounds)


def run_probe(name: str, *arguments: object, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a script beside this one in a fresh process and return the JSON object that it prints last."""
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    outcome = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **(environment or {})}
    )
    result: dict[str, Any] = json.loads(outcome.stdout.splitlines()[-1])
    return result
