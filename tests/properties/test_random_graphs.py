"""Random graphs over all operators and element types: evaluator, interpreter and machine code agree.

The operators are shared out among the parts. Graphs are drawn in batches, each for what the batches before left
unused. 200 graphs are drawn, which must use every operator; where the environment has GLOWSTONE_NIGHTLY, 2,000 and
more, until every operator was used three times with every element type in every operand.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from helpers.graph_execution import compile_graph, interpret_graph
from helpers.operator_samples import OWN
from helpers.random_graphs import Use, declared_uses, is_stated_otherwise, random_graph, uses_of
from helpers.rounding_noise import expected_results
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from glowstone.backends.cpu.target import Target
from glowstone.errors import ExecutionError
from glowstone.graph import Graph, print_graph, verify_graph
from glowstone.runtime.kernel_library import KernelLibrary

NIGHTLY = "GLOWSTONE_NIGHTLY" in os.environ
PARTS = 4
GRAPHS = (2000 if NIGHTLY else 200) // PARTS
BATCH = 25 if NIGHTLY else 10
MOST_BATCHES = 3 * GRAPHS // BATCH
TIMES = 3
"""How often everything is to be used, in a nightly run."""
MOST_UNDECIDED = 0.1
"""Part of all numbers that roundings may decide."""


class Coverage:
    """What the graphs so far used, and how many of their results were checked."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.declared = declared_uses(names)
        self.uses: Counter[Use] = Counter()
        self.graphs = self.nodes = self.numbers = self.undecided = 0

    def add(self, graph: Graph) -> None:
        self.graphs += 1
        self.nodes += len(graph.nodes)
        self.uses.update(set(uses_of(graph)))

    @property
    def lacking(self) -> list[Use]:
        """What is to be used still: of operators nothing is used of, or all that is not used often enough."""
        if NIGHTLY:
            return [use for use in self.declared if self.uses[use] < TIMES and not is_stated_otherwise(use)]
        used = {use.operator for use in self.uses}
        return [use for use in self.declared if use.operator not in used]


def check_graph(graph: Graph, feeds: dict[str, np.ndarray], library: KernelLibrary, coverage: Coverage) -> None:
    """The interpreter and machine code, in both numerics, give the reference's results or refuse as it does."""
    verify_graph(graph)
    coverage.add(graph)
    runs = [
        lambda: interpret_graph(graph, feeds),
        *(
            lambda numerics=numerics: compile_graph(graph, numerics=numerics, library=library).run(feeds)
            for numerics in ("relaxed", "strict")[: 2 if coverage.graphs % 4 == 0 else 1]
        ),
    ]
    try:
        expected = expected_results(graph, feeds)
    except ExecutionError:
        for run in runs:
            with pytest.raises(ExecutionError):
                run()
        return
    coverage.numbers += sum(result.array.size for result in expected.values())
    coverage.undecided += sum(int((~result.decided).sum()) for result in expected.values())
    for run in runs:
        found = run()
        for name, result in expected.items():
            complaint = result.complaint(found[name])
            assert complaint is None, f"{name}: {complaint}\n{print_graph(graph)}"


def run_batch(number: int, wanted: list[Use], library: KernelLibrary, coverage: Coverage) -> None:
    """A batch of graphs drawn for `wanted`; hypothesis makes a graph that fails as small as it can."""

    @seed(number)
    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def check(random):
        graph, feeds = random_graph(random, wanted)
        check_graph(graph, feeds, library, coverage)

    check()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_evaluator_interpreter_and_machine_code_agree(part, record_property):
    coverage = Coverage(list(OWN)[part::PARTS])
    library = KernelLibrary(Target.host())
    for number in range(MOST_BATCHES):
        if coverage.graphs >= GRAPHS and not coverage.lacking:
            break
        run_batch(1000 * part + number, coverage.lacking or coverage.declared, library, coverage)
    text = "random graphs: {} graphs, {} nodes, {} of {} operators, {} of {} element types of operands"
    used = {use.operator for use in coverage.uses} & set(coverage.names)
    declared = set(coverage.declared)
    counts = (len(used), len(coverage.names), len(declared & set(coverage.uses)), len(declared))
    record_property("coverage", (text, coverage.graphs, coverage.nodes, *counts))
    assert not coverage.lacking, f"never used, or too rarely: {', '.join(map(str, coverage.lacking))}"
    assert coverage.undecided <= MOST_UNDECIDED * coverage.numbers
