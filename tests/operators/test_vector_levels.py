"""The samples of all operators at every level of vector instructions: run where the machine has it, else compiled.

Every sample is taken at the best level that the machine has, two of every operator at each other level; all of them at
every level where the environment has GLOWSTONE_NIGHTLY. What was run and what was only compiled is printed at the
end of the tests.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from helpers.graph_execution import OneObject, compile_graph, plan_graph
from helpers.object_symbols import undefined_symbols
from helpers.operator_samples import OWN, samples_of, side_by_side
from helpers.vector_levels import LEVELS, VectorLevel, best_level

from glowstone.backends.cpu.compile import emit_object
from glowstone.graph import Sample, as_tuple
from glowstone.runtime.kernel_library import KernelLibrary
from glowstone.types import ElementType, is_float_dtype

PARTS = 4
"""Tests of one level: operators taken in turn."""
SAMPLES_OF_OTHER_LEVELS = 2
ALL_SAMPLES = "GLOWSTONE_NIGHTLY" in os.environ


def chosen_samples(name: str, level: VectorLevel) -> list[Sample]:
    """All samples of an operator at the best level; elsewhere a few, other ones at every level."""
    samples = list(samples_of(name))
    if ALL_SAMPLES or level == best_level():
        return samples
    first = LEVELS.index(level) * SAMPLES_OF_OTHER_LEVELS
    count = min(SAMPLES_OF_OTHER_LEVELS, len(samples))
    return [samples[(first + offset) % len(samples)] for offset in range(count)]


def check_level(samples: list[Sample], level: VectorLevel) -> None:
    """One object of all kernels of the samples is generated and needs nothing from outside; it is run where it can."""
    graph, feeds = side_by_side(samples)
    keys = plan_graph(graph, level.target).keys
    content = emit_object(keys, level.target)
    assert undefined_symbols(content) == set()
    assert all(key.symbol.encode() in content for key in keys)
    if level.runs_here:
        library = KernelLibrary(level.target, OneObject(content))
        model = compile_graph(graph, target=level.target, library=library, check=False)
        assert library.compiled == 0
        check_results(samples, model.run(feeds))


def check_results(samples: list[Sample], results: dict[str, np.ndarray]) -> None:
    """The results are those of the references."""
    found = iter(results.values())
    for number, sample in enumerate(samples):
        for expected in as_tuple(sample.operator.reference(*sample.operands)):
            assert_near(next(found), np.asarray(expected), sample.tolerance, f"{sample.operator}, sample {number}")
    assert next(found, None) is None


def assert_near(found: np.ndarray, expected: np.ndarray, tolerance: float, message: str) -> None:
    """Floats within `tolerance` of the largest value, all else exactly."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), message
    if ElementType.from_dtype(expected.dtype).is_narrow:  # of which NumPy does not know NaN
        found, expected = found.astype(np.float32), expected.astype(np.float32)
        tolerance = 0
    elif not is_float_dtype(expected.dtype):
        np.testing.assert_array_equal(found, expected, message)
        return
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * largest, err_msg=message)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_operators(level, part, record_property):
    names = list(OWN)[part::PARTS]
    count = 0
    for name in names:
        samples = chosen_samples(name, level)
        assert samples, f"{name} has no samples"
        check_level(samples, level)
        count += len(samples)
    verb = "run" if level.runs_here else "compiled only"
    record_property("coverage", (f"vector level {level.name}: {{}} operators, {{}} samples {verb}", len(names), count))


def test_the_machine_runs_a_level():
    assert best_level().runs_here
