"""Damaged models: only a GlowstoneError may come out, whatever the bytes say, within time and memory.

2,000 mutants go through import, graph passes, lowering and planning, a tenth of them as machine code that runs; as many
as the environment's GLOWSTONE_FUZZ says (`make fuzz`), and then half of them run. A mutant is made from its number:
`python -m helpers.mutation_campaign NUMBER`, run in `tests/`, tries one again.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from helpers.blocks import transformer_block
from helpers.mutation import mutant
from helpers.mutation_campaign import Worker, try_all, without_fields

FEW = 2000
MUTANTS = int(os.environ.get("GLOWSTONE_FUZZ", FEW))
RUN_ONE_OF = 10 if MUTANTS <= FEW else 2
PROCESSES = 2


def depth_of(number: int) -> str:
    return "plan" if number % RUN_ONE_OF else "machine"


def test_mutants_are_refused_or_run(tmp_path: Path, record_property):
    coverage = try_all(range(MUTANTS), depth_of, tmp_path / "work", PROCESSES)
    found = [finding for finding in coverage.findings if finding.is_first]
    for finding in found:
        (tmp_path / f"mutant_{finding.mutant.number}.onnx").write_bytes(finding.smallest)
    assert not found, f"smallest forms in {tmp_path}\n" + "\n".join(map(str, found))
    outcomes = coverage.outcomes
    refused, planned = outcomes["refused"], outcomes["planned"]
    run = {kind: outcomes[kind] for kind in ("compiled", "stopped", "ran")}
    assert refused + planned + sum(run.values()) == coverage.tried == MUTANTS
    assert 2 * coverage.parsed >= MUTANTS
    assert refused > MUTANTS // 10
    assert planned > MUTANTS // 10
    assert run["ran"] > MUTANTS // (20 * RUN_ONE_OF)
    text = "damaged models: {} mutants, {} past the parser; {} refused, {} planned, {} compiled, of which {} ran"
    record_property(
        "coverage", (text, MUTANTS, coverage.parsed, refused, planned, sum(run.values()), run["ran"] + run["stopped"])
    )


def test_a_mutant_is_made_from_its_number_alone():
    models = {"block": transformer_block().SerializeToString(deterministic=True)}
    made = [mutant(number, models) for number in range(40)]
    assert [mutant(number, models) for number in reversed(range(40))] == made[::-1]
    assert len({one.data for one in made}) > 30
    assert any(mutant(one.number, models, ()).data != one.data for one in made)


def test_a_fault_is_made_smaller():
    data = transformer_block().SerializeToString()
    smallest = without_fields(data, lambda other: b"Softmax" in other)
    assert b"Softmax" in smallest
    assert len(smallest) < 40


def test_a_process_that_ends_is_a_fault_and_another_goes_on(tmp_path):
    with contextlib.closing(Worker(tmp_path)) as worker:
        assert worker.attempt(b"", "no such depth", 0).kind == "fault"
        assert worker.attempt(b"", "plan", 0).kind == "refused"
