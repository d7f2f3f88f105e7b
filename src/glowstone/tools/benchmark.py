"""Timing a compiled model: many calls in a row, summed up in the words of the field."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

_SEED: Final = 0
_WARM_UP: Final = 3  # calls that are not counted: pages are touched, caches filled


class Shaped(Protocol):
    """An input of a model: its name and its shape (symbols where dynamic)."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int | str, ...]: ...


class Port(Shaped, Protocol):
    """An input with its NumPy type."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


@dataclass(frozen=True)
class Timing:
    """Latencies in seconds of calls in a row, and the seconds they took in all."""

    latencies: tuple[float, ...]
    duration: float

    @property
    def throughput(self) -> float:
        """Calls a second."""
        return len(self.latencies) / self.duration

    def as_dict(self) -> dict[str, float]:
        """The figures by name; times in seconds."""
        return {
            "count": len(self.latencies),
            "duration_s": self.duration,
            "latency_median_s": statistics.median(self.latencies),
            "latency_average_s": statistics.fmean(self.latencies),
            "latency_minimum_s": min(self.latencies),
            "latency_maximum_s": max(self.latencies),
            "throughput_per_s": self.throughput,
        }


def time_calls(call: Callable[[], object], seconds: float | None = None, iterations: int | None = None) -> Timing:
    """Call again and again until `seconds` are over or `iterations` are done, at least once, after a short warm-up."""
    for _ in range(_WARM_UP):
        call()
    latencies: list[float] = []
    begin = now = time.perf_counter()
    while not latencies or (
        (seconds is None or now - begin < seconds) and (iterations is None or len(latencies) < iterations)
    ):
        call()
        before, now = now, time.perf_counter()
        latencies.append(now - before)
    return Timing(tuple(latencies), now - begin)


def missing_shapes(inputs: Sequence[Shaped], shapes: Mapping[str, tuple[int, ...]]) -> list[Shaped]:
    """The inputs that have a symbolic dimension and no shape given."""
    return [
        one for one in inputs if one.name not in shapes and not all(isinstance(extent, int) for extent in one.shape)
    ]


def random_inputs(inputs: Sequence[Port], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, npt.NDArray[Any]]:
    """Seeded arrays for all inputs: normal floats, and integers 0 and 1, which any table of embeddings takes."""
    generator = np.random.default_rng(_SEED)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for port in inputs:
        static = tuple(extent for extent in port.shape if isinstance(extent, int))
        shape = shapes.get(port.name, static)
        if np.issubdtype(port.dtype, np.floating):
            arrays[port.name] = generator.standard_normal(shape).astype(port.dtype)
        else:
            arrays[port.name] = generator.integers(0, 2, shape).astype(port.dtype)
    return arrays
