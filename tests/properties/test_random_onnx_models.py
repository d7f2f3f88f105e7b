"""Random ONNX models over all operators that are imported.

Machine code gives what the evaluator gives: optimized, with every optional pass left out, with all values as outputs,
and with nodes put between that change nothing. 100 models are drawn; 1,000 where the environment has GLOWSTONE_NIGHTLY.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest
from helpers.graph_execution import compile_graph
from helpers.graph_models import IMPORTABLE, onnx_model
from helpers.optional_passes import OPTIONAL_PASSES
from helpers.random_graphs import declared_uses, random_graph, uses_of
from helpers.rounding_noise import expected_results
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from glowstone.backends.cpu.target import Target
from glowstone.errors import ExecutionError
from glowstone.graph import Graph, print_graph
from glowstone.importer import import_model, open_model
from glowstone.runtime.kernel_library import KernelLibrary

PARTS = 2
MODELS = (1000 if "GLOWSTONE_NIGHTLY" in os.environ else 100) // PARTS
BATCH = 25


def imported(graph: Graph, feeds: dict[str, np.ndarray], **arguments) -> Graph:
    """The graph written as a model, and read."""
    shapes = {name: array.shape for name, array in feeds.items()}
    return import_model(open_model(onnx_model(graph, **arguments)), shapes)


def check_model(graph: Graph, feeds: dict[str, np.ndarray], random, library: KernelLibrary) -> None:
    plain = imported(graph, feeds)
    try:
        expected = expected_results(plain, feeds)
    except ExecutionError:
        with pytest.raises(ExecutionError):
            compile_graph(plain, library=library).run(feeds)
        return
    shown = imported(graph, feeds, all_values=True)
    forms = {
        "optimized": (plain, ()),
        "without optional passes": (plain, OPTIONAL_PASSES),
        "all values as outputs": (shown, ()),
        "with nodes that change nothing": (imported(graph, feeds, disturb=random), ()),
    }
    everything = {**expected_results(shown, feeds), **expected}
    for form, (changed, skipped) in forms.items():
        found = compile_graph(changed, skip_passes=skipped, library=library).run(feeds)
        for name, array in found.items():
            complaint = everything[name].complaint(array)
            assert complaint is None, f"{form}: {name}: {complaint}\n{print_graph(changed)}"


class Drawn:
    """The models so far: how many, and their operators."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.used: set[str] = set()
        self.models = 0
        self.library = KernelLibrary(Target.host())


def run_batch(number: int, drawn: Drawn) -> None:
    """A batch of models, drawn for the operators that none had before."""
    wanted = [use for use in declared_uses(drawn.names) if use.operator not in drawn.used]

    @seed(number)
    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def check(random):
        graph, feeds = random_graph(random, wanted, IMPORTABLE)
        drawn.used.update(use.operator for use in uses_of(graph))
        drawn.models += 1
        check_model(graph, feeds, random, drawn.library)

    check()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_form_of_a_model_changes_its_results(part, record_property):
    names = IMPORTABLE[part::PARTS]
    coverage = Drawn(names)
    for batch in range(MODELS // BATCH):
        run_batch(1000 * part + batch, coverage)
    text = "random ONNX models: {} models, {} of {} operators"
    record_property("coverage", (text, coverage.models, len(coverage.used & set(names)), len(names)))
