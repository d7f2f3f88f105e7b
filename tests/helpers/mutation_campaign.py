"""Mutants in numbers through worker processes: what became of each, and the smallest form of every fault.

`python -m helpers.mutation_campaign FIRST LAST`, run in `tests/`, tries these numbers and writes what it finds to a
folder; `--show NUMBER` tries one and prints the whole of it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from helpers.mutation import MOST_EDITS, Mutant, is_parsed, mutant
from helpers.mutation_corpus import corpus, write_weights
from helpers.mutation_edits import is_repeated, messages
from helpers.processes import LineProcess

SECONDS = 20.0
"""Of the processor, for one mutant."""
SECONDS_TO_HANG = 150.0
"""After these a process is ended: other processes may be at work on the machine."""
MOST_ATTEMPTS = 400
"""To make a fault smaller."""


@dataclass(frozen=True)
class Outcome:
    """What became of a model. `kind` is one of the worker's outcomes, or `fault`, with what tells faults apart."""

    kind: str
    error: str = ""
    place: str = ""
    detail: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The same for faults of one kind."""
        return self.error, self.place


@dataclass
class Finding:
    """A fault: the mutant, what came of it, and the smallest model that shows it."""

    mutant: Mutant
    depth: str
    outcome: Outcome
    smallest: bytes
    is_first: bool
    """Of the faults of its kind."""

    def __str__(self) -> str:
        made = f"mutant {self.mutant.number} of {self.mutant.name} ({', '.join(self.mutant.edits)}), {self.depth}"
        return f"{made}: {self.outcome.error} at {self.outcome.place}\n{self.outcome.detail}"


@dataclass
class Coverage:
    """How many mutants came how far."""

    tried: int = 0
    parsed: int = 0
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Coverage) -> None:
        self.tried += other.tried
        self.parsed += other.parsed
        self.outcomes += other.outcomes
        self.findings += other.findings


class Worker:
    """The process that tries models; a new one after a crash or a hang."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = LineProcess("helpers.mutation_worker")
        self.slowest = 0.0
        write_weights(folder)

    def attempt(self, data: bytes, depth: str, seed: int) -> Outcome:
        """What becomes of a model."""
        path = self._folder / "mutant.onnx"
        path.write_bytes(data)
        line = self._process.ask(f"{depth} {seed} {path}", SECONDS_TO_HANG)
        if not line:
            return Outcome("fault", "hang" if line is None else f"crash, exit code {self._process.exit_code}")
        reply = json.loads(line)
        self.slowest = max(self.slowest, reply["seconds"])
        if reply["seconds"] > SECONDS:
            return Outcome("fault", "slow", detail=f"{reply['seconds']:.1f} s, {reply['outcome']} {reply['error']}")
        return Outcome(*(reply[name] for name in ("outcome", "error", "place", "detail")))

    def close(self) -> None:
        """End the process."""
        self._process.close()


def try_all(
    numbers: Sequence[int],
    depth_of: Callable[[int], str],
    folder: Path,
    workers: int = 2,
    report: Callable[[Finding], None] = lambda finding: None,
) -> Coverage:
    """Try the mutants of these numbers; the first fault of each kind is made smaller and reported."""
    models = corpus()
    known: set[tuple[str, str]] = set()

    def part(index: int) -> Coverage:
        place = folder / f"worker_{index}"
        place.mkdir(parents=True)
        with contextlib.closing(Worker(place)) as worker:
            return _try_part(numbers[index::workers], depth_of, models, worker, known, report)

    total = Coverage()
    with ThreadPoolExecutor(workers) as pool:
        for coverage in pool.map(part, range(workers)):
            total.add(coverage)
    return total


def _try_part(
    numbers: Iterable[int],
    depth_of: Callable[[int], str],
    models: Mapping[str, bytes],
    worker: Worker,
    known: set[tuple[str, str]],
    report: Callable[[Finding], None],
) -> Coverage:
    coverage = Coverage()
    for number in numbers:
        one, depth = mutant(number, models), depth_of(number)
        outcome = worker.attempt(one.data, depth, number)
        coverage.tried += 1
        coverage.parsed += is_parsed(one.data)
        coverage.outcomes[outcome.kind] += 1
        if outcome.kind == "fault":
            is_new = outcome.key not in known
            known.add(outcome.key)
            smallest = _smallest(one, models, depth, outcome, worker) if is_new else one.data
            coverage.findings.append(Finding(one, depth, outcome, smallest, is_new))
            if is_new:
                report(coverage.findings[-1])
    return coverage


def _smallest(one: Mutant, models: Mapping[str, bytes], depth: str, outcome: Outcome, worker: Worker) -> bytes:
    """A smaller model with the same fault: with fewer edits, then with fewer fields."""

    def is_same(data: bytes) -> bool:
        return worker.attempt(data, depth, one.number).key == outcome.key

    data, kept = one.data, list(range(MOST_EDITS))
    for position in range(MOST_EDITS):
        fewer = [other for other in kept if other != position]
        tried = mutant(one.number, models, fewer).data
        if tried != data and is_same(tried):
            data, kept = tried, fewer
    return without_fields(data, is_same) if is_parsed(data) and outcome.error != "hang" else data


def without_fields(data: bytes, is_same: Callable[[bytes], bool]) -> bytes:
    """The model without all fields and elements that can go, so that `is_same` still holds."""
    attempts, position = 0, 0
    while attempts < MOST_ATTEMPTS:
        model = onnx.ModelProto.FromString(data)
        places = list(_places(model))
        if position >= len(places):
            break
        message, name, index = places[position]
        if index is None:
            message.ClearField(name)
        else:
            del getattr(message, name)[index]
        attempts += 1
        smaller = model.SerializeToString(deterministic=True)
        if is_same(smaller):
            data = smaller
        else:
            position += 1
    return data


def _places(model: onnx.ModelProto) -> Iterable[tuple[object, str, int | None]]:
    """Fields that are set, and each message of a repeated one: all that can be left out; what holds more first."""
    for message in messages(model):
        for entry, value in message.ListFields():
            yield message, entry.name, None
            if is_repeated(value) and entry.message_type is not None:
                yield from ((message, entry.name, index) for index in range(len(value)))


def main() -> int:
    parser = argparse.ArgumentParser(description="Try mutants and keep what is found.")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--depth", default="machine", help="plan or machine")
    parser.add_argument("-j", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("mutants"), help="folder for what is found")
    arguments = parser.parse_args()
    numbers = range(arguments.first, (arguments.last or arguments.first) + 1)
    arguments.out.mkdir(parents=True, exist_ok=True)

    def report(finding: Finding) -> None:
        (arguments.out / f"mutant_{finding.mutant.number}.onnx").write_bytes(finding.smallest)
        sys.stdout.write(f"{finding}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as folder:
        coverage = try_all(numbers, lambda _: arguments.depth, Path(folder), arguments.j, report)
    seen = collections.Counter(finding.outcome.key for finding in coverage.findings)
    sys.stdout.write("".join(f"{count:5} {' at '.join(key)}\n" for key, count in seen.most_common()))
    sys.stdout.write(f"{coverage.tried} mutants, {coverage.parsed} parsed, {dict(coverage.outcomes)}\n")
    return 1 if coverage.findings else 0


if __name__ == "__main__":
    sys.exit(main())
