"""onnx's backend suite, case by case, has the outcomes of `cases.txt`, by onnx's own runner and comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.conformance import LISTED, Worker, read_list, worker

SHARDS = 32
FEWEST_NODE_CASES = 1800
CASES = read_list()


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory):
    """A worker of this process; all processes of a test run share the cache."""
    folder: Path = tmp_path_factory.getbasetemp()
    with worker(folder.parent / "conformance") as one:
        yield one


def test_the_list_has_every_case_of_the_suite(suite: Worker):
    assert {case: entry.operators for case, entry in CASES.items()} == suite.cases
    assert sum(case.startswith("node/") for case in suite.cases) >= FEWEST_NODE_CASES


def test_the_list_is_complete_in_itself():
    outcomes = [entry.outcome for entry in CASES.values()]
    assert {outcome.kind for outcome in outcomes} <= set(LISTED)
    assert all(outcome.detail for outcome in outcomes if outcome.kind == "wrong"), "a reason is missing"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_outcomes_are_as_listed(suite: Worker, shard: int):
    """Neither worse nor better: what changes is listed anew with `make conformance`."""
    changed = []
    for case in sorted(CASES)[shard::SHARDS]:
        listed, found = CASES[case].outcome, suite.run(case)
        if found.kind != listed.kind:
            changed.append(f"{case}: listed {listed.kind}, now {found.kind}: {found.detail}")
    assert not changed, "\n".join(changed)
