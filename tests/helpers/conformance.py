"""onnx's backend suite through `glowstone.onnx_backend`, and the list of what came of each case.

`python -m helpers.conformance`, run in `tests/`, writes the list anew: `-j` says with how many processes, `-k` which
cases to run, as a regular expression or `not pass` for those that do not pass so far; the others stay as listed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from helpers.processes import LineProcess

LIST = Path(__file__).resolve().parents[1] / "conformance" / "cases.txt"

SECONDS_TO_START = 900
SECONDS_OF_A_CASE = 300
"""A case that takes longer hangs; the slowest takes a few seconds."""

LISTED = ("pass", "host", "unsupported", "wrong")
"""Outcomes that a line of the list may have; `error`, `crash` and `hang` are faults."""

_HEADER = """\
# What comes of every case of onnx's backend suite: `kind/name outcome operators`, and a reason behind `wrong`.
# Written by `make conformance`; only reasons are written by hand, and kept.
"""


@dataclass(frozen=True)
class Outcome:
    """`kind` is one of `LISTED`, or `error`, `crash` or `hang`."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Entry:
    """What the list says of a case."""

    outcome: Outcome
    operators: str


class Worker:
    """The process that runs cases; a new one after a crash or a hang."""

    def __init__(self, cache: Path) -> None:
        places = {"GLOWSTONE_CACHE_DIR": str(cache / "compiled"), "ONNX_MODELS": str(cache / "models")}
        self._process = LineProcess("helpers.conformance_worker", places)
        self._cases: dict[str, str] = {}

    @property
    def cases(self) -> dict[str, str]:
        """All cases of the suite, as `kind/name`, with their operators."""
        self._start()
        return self._cases

    def run(self, case: str) -> Outcome:
        """What comes of a case, given as `kind/name`."""
        self._start()
        reply = self._process.ask(case.partition("/")[2], SECONDS_OF_A_CASE)
        if reply:
            kind, _, detail = reply.partition("\t")
            return Outcome(kind, detail)
        if reply is None:
            return Outcome("hang", f"more than {SECONDS_OF_A_CASE} s")
        return Outcome("crash", f"exit code {self._process.exit_code}")

    def close(self) -> None:
        self._process.close()

    def _start(self) -> None:
        if not self._process.is_running:
            self._process.start()
            first = self._process.read(SECONDS_TO_START)
            assert first, "the suite cannot be loaded"
            self._cases = dict(case.split("=") for case in first.split())


@contextlib.contextmanager
def worker(cache: Path) -> Iterator[Worker]:
    """A worker whose process ends with the block."""
    one = Worker(cache)
    try:
        yield one
    finally:
        one.close()


def read_list(path: Path = LIST) -> dict[str, Entry]:
    """The entries by `kind/name`; `detail` of an outcome is the reason behind `wrong`."""
    lines = [line.split(maxsplit=3) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    listed = {name: Entry(Outcome(kind, *reason), operators) for name, kind, operators, *reason in lines}
    assert len(listed) == len(lines), "a case is listed twice"
    return listed


def write_list(entries: Mapping[str, Entry], before: Mapping[str, Entry], path: Path = LIST) -> None:
    """Write the list, sorted. A reason stays as it was `before`; a new wrong case gets what the comparison said."""
    lines = []
    for name, entry in sorted(entries.items()):
        outcome = entry.outcome
        if outcome.kind == "wrong" and name in before and before[name].outcome.kind == "wrong":
            outcome = before[name].outcome
        reason = f" {outcome.detail}" if outcome.kind == "wrong" else ""
        lines.append(f"{name} {outcome.kind} {entry.operators}{reason}\n")
    path.write_text(_HEADER + "".join(lines))


def run_all(workers: Sequence[Worker], cases: Iterable[str]) -> dict[str, Outcome]:
    """The outcome of every case, by its name; the cases are split among the workers."""
    ordered = sorted(cases)

    def part(index: int) -> dict[str, Outcome]:
        return {case: workers[index].run(case) for case in ordered[index :: len(workers)]}

    with ThreadPoolExecutor(len(workers)) as pool:
        return {case: outcome for done in pool.map(part, range(len(workers))) for case, outcome in done.items()}


def _is_meant(case: str, pattern: str, before: Mapping[str, Entry]) -> bool:
    if pattern == "not pass":
        return case not in before or before[case].outcome.kind != "pass"
    return re.search(pattern, case) is not None


def main() -> int:
    parser = argparse.ArgumentParser(description="Run onnx's backend suite and write the list of outcomes.")
    parser.add_argument("-j", type=int, default=1, help="processes")
    parser.add_argument("-k", default="", help="cases to run: a regular expression, or `not pass`")
    arguments = parser.parse_args()
    before = read_list() if LIST.exists() else {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        workers = [stack.enter_context(worker(Path(folder))) for _ in range(arguments.j)]
        operators = workers[0].cases
        cases = {case for case in operators if _is_meant(case, arguments.k, before)}
        kept = {case: before[case].outcome for case in operators if case in before and case not in cases}
        outcomes = kept | run_all(workers, cases)
    for case in sorted(outcomes.keys() | before.keys()):
        old = before[case].outcome.kind if case in before else None
        new = outcomes.get(case)
        if new is None or old != new.kind:
            sys.stdout.write(f"{case}: {old} -> {new and new.kind} {new.detail if new else ''}\n")
    sys.stdout.write(f"{dict(collections.Counter(outcome.kind for outcome in outcomes.values()))}\n")
    faults = [case for case, outcome in outcomes.items() if outcome.kind not in LISTED]
    entries = {case: Entry(outcomes[case], operators[case]) for case in outcomes.keys() - set(faults)}
    write_list(entries, before)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
