"""Timing calls and making inputs for them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from glowstone.tools import benchmark
from glowstone.tools.benchmark import Timing, missing_shapes, random_inputs, time_calls

PORTS = [
    SimpleNamespace(name="image", shape=("n", 3), dtype=np.dtype(np.float32)),
    SimpleNamespace(name="words", shape=(4,), dtype=np.dtype(np.int64)),
    SimpleNamespace(name="scale", shape=(), dtype=np.dtype(np.float64)),
]


@pytest.fixture
def clock(monkeypatch):
    """A clock that a call moves on by a tenth of a second."""
    now = [100.0]
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: now[0])

    def call():
        now[0] += 0.1

    return call


def test_calls_are_counted_until_the_time_is_over(clock):
    timing = time_calls(clock, seconds=0.95)
    assert len(timing.latencies) == 10
    assert timing.duration == pytest.approx(1.0)
    assert timing.throughput == pytest.approx(10.0)


def test_iterations_bound_the_calls_and_at_least_one_is_made(clock):
    assert len(time_calls(clock, seconds=100.0, iterations=3).latencies) == 3
    assert len(time_calls(clock, seconds=0.0).latencies) == 1


def test_the_figures_are_those_of_the_latencies():
    figures = Timing((0.1, 0.4, 0.2, 0.3, 2.0), 3.0).as_dict()
    assert figures["latency_median_s"] == 0.3
    assert figures["latency_average_s"] == pytest.approx(0.6)
    assert (figures["latency_minimum_s"], figures["latency_maximum_s"]) == (0.1, 2.0)


def test_inputs_follow_shapes_and_types():
    arrays = random_inputs(PORTS, {"image": (2, 3)})
    assert {name: (array.shape, array.dtype.str[1:]) for name, array in arrays.items()} == {
        "image": ((2, 3), "f4"),
        "words": ((4,), "i8"),
        "scale": ((), "f8"),
    }
    assert set(arrays["words"].tolist()) <= {0, 1}
    assert len(np.unique(arrays["image"])) == 6


def test_open_dimensions_without_a_shape_are_named():
    assert missing_shapes(PORTS, {}) == PORTS[:1]
    assert missing_shapes(PORTS, {"image": (1, 3)}) == []
