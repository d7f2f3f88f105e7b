"""Drives engines in processes of their own, in turn, and compares them round by round."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

HERE = Path(__file__).resolve().parent
PAUSE_SECONDS = 0.05  # between two engines: threads of the first stop spinning


class EngineError(Exception):
    """An engine cannot run the model; the text says what it said."""


class EngineProcess:
    """A running `engine.py`. A context manager: the process ends with the block.

    Raises:
        EngineError: the engine cannot run the model.
    """

    def __init__(
        self,
        engine: str,
        model: Path,
        inputs: Path,
        threads: int = 1,
        environment: Mapping[str, str] | None = None,
        constants: Path | None = None,
        tuning: Path | None = None,
    ) -> None:
        command = [sys.executable, str(HERE / "engine.py"), engine, str(model), str(inputs), str(threads)]
        for option, file in (("--constants", constants), ("--tuning", tuning)):
            command += [option, str(file)] if file is not None else []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
        self.engine = engine
        self.compile_seconds = float(self._answer()["compile_s"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def latencies(self, seconds: float, form: str = "bind") -> list[float]:
        """Latencies in seconds of calls in a row; `form` is bind or run."""
        return [float(latency) for latency in self._ask(f"{form} {seconds}")["latencies"]]

    def outputs(self) -> list[np.ndarray]:
        """What the model computes from the first input of the pool."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "outputs.npz"
            self._ask(f"outputs {file}")
            with np.load(file) as stored:
                return [stored[name] for name in stored.files]

    def resident_bytes(self) -> int:
        return int(self._ask("rss")["rss"])

    def peak_bytes(self) -> int:
        return int(self._ask("rss")["peak"])

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"{self.engine} ended with code {self._process.wait()}")
        result: dict[str, Any] = json.loads(line)
        if "error" in result:
            raise EngineError(result["error"])
        return result


def interleaved(
    engines: Sequence[EngineProcess], rounds: int, seconds: float, form: str = "bind"
) -> list[list[list[float]]]:
    """Latencies in seconds: [round][engine][call]. Each round drives all in turn, after one to warm up."""
    for engine in engines:
        engine.latencies(seconds / 2, form)
    found = []
    for _ in range(rounds):
        row = []
        for engine in engines:
            row.append(engine.latencies(seconds, form))
            time.sleep(PAUSE_SECONDS)
        found.append(row)
    return found


def median_ratio(rounds: Sequence[Sequence[Sequence[float]]], numerator: int, denominator: int) -> float:
    """Median over the rounds of the ratio of two engines' best latencies."""
    return statistics.median(min(row[numerator]) / min(row[denominator]) for row in rounds)


def run_probe(name: str, *arguments: object, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a script beside this one in a fresh process and return the JSON object that it prints last."""
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    outcome = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **(environment or {})}
    )
    result: dict[str, Any] = json.loads(outcome.stdout.splitlines()[-1])
    return result
