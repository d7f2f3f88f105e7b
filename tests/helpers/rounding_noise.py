"""What a graph's results may be: its reference, and how far rounding may move each of them.

The graph is evaluated again some times with every float result moved by what its operator may be off, one way and the
other. How far the results spread says what differences rounding explains; a boolean or an integer that changes was
decided by a rounding and says nothing. What no rounding reaches has no spread: there the bits must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glowstone.graph import Graph, Node, Value, as_tuple, evaluate_graph
from glowstone.ops import Elementwise, GridSample, MaxRoiPool
from glowstone.types import ElementType, is_float_dtype
from helpers.operator_samples import rule_of

Array = np.ndarray
RUNS = 6
MARGIN = 2.0
"""Of the spread that was seen."""
COMPUTED_PLACES = (GridSample, MaxRoiPool)
"""Operators that select elements of the first operand at places computed from the others."""
EPSILONS = {ElementType.F64: 2.0**-52, ElementType.F32: 2.0**-23, ElementType.F16: 2.0**-10, ElementType.BF16: 2.0**-7}


@dataclass(frozen=True)
class Expected:
    """A result of the reference: `array`, for each element how far a float may be off, and whether it is decided."""

    array: Array
    allowed: Array
    decided: Array

    def complaint(self, found: Array) -> str | None:
        """What is wrong with a result; None where nothing is."""
        if (found.shape, found.dtype) != (self.array.shape, self.array.dtype):
            return f"{found.dtype}{found.shape}, expected {self.array.dtype}{self.array.shape}"
        good = self._agrees(found) | ~self.decided
        if good.all():
            return None
        worst = tuple(int(index) for index in np.argwhere(~good)[0])
        share = f"{(~good).sum()} of {good.size} wrong"
        return f"{found[worst]} at {worst}, expected {self.array[worst]} +- {self.allowed[worst]}, {share}"

    def _agrees(self, found: Array) -> Array:
        if not is_float_dtype(self.array.dtype):
            return _bits(found) == _bits(self.array)
        wide, target = found.astype(np.float64), self.array.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(wide - target) <= self.allowed
        return np.asarray(near | (wide == target) | (np.isnan(wide) & np.isnan(target)))


def expected_results(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Expected]:
    """The results by name.

    Raises:
        ExecutionError: an operator refuses its operands' values.
    """
    with np.errstate(all="ignore"):
        exact = evaluate_graph(graph, feeds)
        runs = [_evaluate_with(_Noise(number), graph, feeds) for number in range(RUNS)]
        return {name: _expected(np.asarray(array), [run[name] for run in runs]) for name, array in exact.items()}


def _expected(array: Array, runs: list[Array]) -> Expected:
    if not is_float_dtype(array.dtype):
        decided = np.all([_bits(run) == _bits(array) for run in runs], axis=0)
        return Expected(array, np.zeros(array.shape), np.asarray(decided))
    target = array.astype(np.float64)
    is_number = np.isfinite(target)
    spread, decided = np.zeros(array.shape), np.ones(array.shape, np.bool_)
    for run in runs:
        wide = run.astype(np.float64)
        alike = np.where(is_number, np.isfinite(wide), (wide == target) | (np.isnan(wide) & np.isnan(target)))
        spread = np.maximum(spread, np.where(is_number & alike, np.abs(wide - target), 0))
        decided = decided & alike
    return Expected(array, MARGIN * spread, decided)


def _evaluate_with(noise: _Noise, graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    values: dict[Value, Array] = {value: np.asarray(feeds[value.name]) for value in graph.inputs}
    for node in graph.nodes:
        operands = [None if operand is None else values[operand] for operand in node.operands]
        for value, array in zip(node.results, noise.results(node, operands), strict=True):
            values[value] = array.astype(value.element.dtype)
    return {name: values[value] for name, value in zip(graph.output_names, graph.outputs, strict=True)}


class _Noise:
    """One run: everything is moved up in the first one, down in the second, anyhow in the others."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._random = np.random.default_rng(number)

    def results(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        """The results of a node, each float off by a rounding; those of sums also as if the operands were."""
        results = _results(node, operands)
        rounded = [is_float_dtype(result.dtype) and not _is_selection(result, operands) for result in results]
        if not node.operands or not any(rounded):
            if isinstance(node.operator, COMPUTED_PLACES):
                return _results(node, [operands[0], *self._shaken(node, operands)[1:]])
            return results
        sizes = [np.abs(array.astype(np.float64)) for array in operands if _is_float(array)]
        is_elementwise = isinstance(node.operator, Elementwise)
        if not is_elementwise and all(rounded):
            results = _results(node, self._shaken(node, operands))
        bound = node.operator.ulp_bound(*node.operands)
        scale = _largest_at_each_place if is_elementwise else _largest
        return [
            self._moved(result, bound, scale(result, sizes)) if moves else result
            for result, moves in zip(results, rounded, strict=True)
        ]

    def _shaken(self, node: Node, operands: Sequence[Array | None]) -> list[Array | None]:
        return [
            self._moved(array, 1.0, np.abs(array.astype(np.float64)))
            if _is_float(array) and not rule_of(node.operator, index).host
            else array
            for index, array in enumerate(operands)
        ]

    def _moved(self, array: Array, bound: float, scale: Array | float) -> Array:
        """The array with every number moved by `bound` units in the last place of `scale`."""
        signs = 1 - 2 * (np.full(array.shape, self._number) if self._number < 2 else self._any_bits(array.shape))
        step = bound * EPSILONS[ElementType.from_dtype(array.dtype)] * np.asarray(scale)
        wide = array.astype(np.float64)
        return np.where(np.isfinite(wide), wide + signs * step, wide).astype(array.dtype)

    def _any_bits(self, shape: tuple[int, ...]) -> Array:
        return self._random.integers(0, 2, shape)


def _results(node: Node, operands: Sequence[Array | None]) -> list[Array]:
    return [np.asarray(array) for array in as_tuple(node.operator.reference(*operands))]


def _is_float(array: Array | None) -> bool:
    return array is not None and is_float_dtype(array.dtype)


def _largest(result: Array, sizes: Sequence[Array]) -> float:
    """The largest finite number of operands and result."""
    whole = [*sizes, np.abs(result.astype(np.float64))]
    return float(max(size[np.isfinite(size)].max(initial=0) for size in whole))


def _largest_at_each_place(result: Array, sizes: Sequence[Array]) -> Array:
    """Likewise, for every element by itself."""
    whole = [*sizes, np.abs(result.astype(np.float64))]
    return np.max([np.broadcast_to(np.where(np.isfinite(size), size, 0), result.shape) for size in whole], axis=0)


def _is_selection(result: Array, operands: Sequence[Array | None]) -> bool:
    """Whether every number of the result is one of an operand, or 0: moved, not computed."""
    given = [array for array in operands if array is not None and array.dtype == result.dtype]
    pool = [_bits(array).reshape(-1) for array in given]
    zero = np.zeros(1, f"u{result.dtype.itemsize}")
    return bool(pool) and bool(np.isin(_bits(result), np.concatenate([*pool, zero])).all())


def _bits(array: Array) -> Array:
    """The elements as unsigned integers."""
    return np.asarray(array, order="C").view(f"u{array.dtype.itemsize}")
