"""What a graph's results may be: its reference, and how far rounding may move each of them.

The graph is evaluated again some times with every float result moved by what its operator may be off, one way and the
other. How far the results spread says what differences rounding explains; a boolean or an integer that changes was
decided by a rounding and says nothing. What no rounding reaches has no spread: there the bits must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowstone.graph import Graph, Node, Value, as_tuple, evaluate_graph
from glowstone.ops import Elementwise
from glowstone.types import is_float_dtype
from helpers.operator_samples import rule_of

Array = np.ndarray
RUNS = 6
MARGIN = 2.0
"""Of the spread that was seen."""


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
        worst = tuple(np.argwhere(~good)[0])
        share = f"{(~good).sum()} of {good.size}"
        return f"{found[worst]} at {worst}, expected {self.array[worst]} +- {self.allowed[worst]} ({share} wrong)"

    def _agrees(self, found: Array) -> Array:
        if not is_float_dtype(self.array.dtype):
            return np.asarray(found == self.array)
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
        noisy = [_noisy(graph, feeds, run) for run in range(RUNS)]
        return {name: _expected(np.asarray(array), [run[name] for run in noisy]) for name, array in exact.items()}


def _expected(array: Array, runs: list[Array]) -> Expected:
    if not is_float_dtype(array.dtype):
        decided = np.all([run == array for run in runs], axis=0)
        return Expected(array, np.zeros(array.shape), np.asarray(decided))
    target = array.astype(np.float64)
    wide = [run.astype(np.float64) for run in runs]
    same_kind = [
        np.where(np.isfinite(target), np.isfinite(run), (run == target) | (np.isnan(run) & np.isnan(target)))
        for run in wide
    ]
    spread = np.max([np.where(np.isfinite(target) & kind, np.abs(run - target), 0) for run, kind in zip(wide, same_kind, strict=True)], axis=0)
    return Expected(array, MARGIN * spread, np.asarray(np.all(same_kind, axis=0)))


def _noisy(graph: Graph, feeds: Mapping[str, Array], run: int) -> dict[str, Array]:
    random = np.random.default_rng(run)
    values: dict[Value, Array] = {value: np.asarray(feeds[value.name]) for value in graph.inputs}
    for node in graph.nodes:
        operands = [None if operand is None else values[operand] for operand in node.operands]
        try:
            results = _moved(node, operands, run, random)
        except Exception:
            results = [np.asarray(array) for array in as_tuple(node.operator.reference(*operands))]
        for value, array in zip(node.results, results, strict=True):
            values[value] = np.asarray(array).astype(value.element.dtype)
    return {name: values[value] for name, value in zip(graph.output_names, graph.outputs, strict=True)}


def _moved(node: Node, operands: list[Array | None], run: int, random: np.random.Generator) -> list[Array]:
    """The results of a node, each float off by a rounding."""
    results = [np.asarray(array) for array in as_tuple(node.operator.reference(*operands))]
    if not node.operands or all(not is_float_dtype(result.dtype) or _is_selection(result, operands) for result in results):
        return results
    is_elementwise = isinstance(node.operator, Elementwise)
    if not is_elementwise and all(is_float_dtype(result.dtype) for result in results):
        shaken = [
            array
            if array is None or not is_float_dtype(array.dtype) or rule_of(node.operator, index).host
            else _shifted(array, 1.0, np.abs(array), run, random)
            for index, array in enumerate(operands)
        ]
        results = [np.asarray(array) for array in as_tuple(node.operator.reference(*shaken))]
    bound = node.operator.ulp_bound(*node.operands)
    floats = [array for array in operands if array is not None and is_float_dtype(array.dtype)]
    moved = []
    for result in results:
        if not is_float_dtype(result.dtype) or _is_selection(result, operands):
            moved.append(result)
            continue
        sizes = [np.abs(array.astype(np.float64)) for array in (*floats, result)]
        if is_elementwise:
            scale = np.max([np.where(np.isfinite(size), size, 0) * np.ones(result.shape) for size in sizes], axis=0)
        else:
            scale = max(size[np.isfinite(size)].max(initial=0) for size in sizes)
        moved.append(_shifted(result, bound, scale, run, random))
    return moved


def _shifted(array: Array, bound: float, scale: Array | float, run: int, random: np.random.Generator) -> Array:
    """The array with every number moved by `bound` units in the last place of `scale`, up or down."""
    kind = np.finfo(array.dtype) if array.dtype.kind == "f" else None
    epsilon = float(kind.eps) if kind is not None else 2.0**-7
    signs = np.full(array.shape, 1 - 2 * run) if run < 2 else 1 - 2 * random.integers(0, 2, array.shape)
    moved = array.astype(np.float64) + signs * (bound * epsilon * np.asarray(scale, np.float64))
    return np.where(np.isfinite(array.astype(np.float64)), moved, array.astype(np.float64)).astype(array.dtype)


def _is_selection(result: Array, operands: list[Array | None]) -> bool:
    """Whether every number of the result is one of an operand: moved, not computed."""
    given = [array.reshape(-1) for array in operands if array is not None and array.dtype == result.dtype]
    if not given:
        return False
    bits = f"u{result.dtype.itemsize}"
    pool = np.concatenate([np.ascontiguousarray(array).view(bits) for array in given])
    flat = np.ascontiguousarray(result).reshape(-1).view(bits)
    return bool(np.isin(flat, np.append(pool, np.zeros(1, pool.dtype))).all())
