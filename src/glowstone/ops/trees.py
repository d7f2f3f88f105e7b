"""Ensembles of decision trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError, UnsupportedError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import constant_array
from glowstone.scalar.forest import AGGREGATES, ForestTable, aggregated, feature_word, node_words
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

COMPARED = frozenset({ElementType.F32, ElementType.F64})
POSITIONS = frozenset({ElementType.I32})


@operator
class TreeScores(Operator):
    """[rows, targets]: for every row of x the weights of the leaves it reaches, summed (or extreme) by target.

    The nodes of all trees are the words of a `ForestTable` with thresholds of x's element type; `roots` are positions
    in it. Leaf p has the entries `starts[p]` to `starts[p + 1]` of `target_ids` and `weights`. All but x are constants.
    Sums run over the trees in order, in float64. A target that no leaf reached gives anything to has 0.
    """

    operands = (
        Operand("x", COMPARED),
        Operand("nodes", POSITIONS, host=True),
        Operand("roots", POSITIONS, host=True),
        Operand("starts", POSITIONS, host=True),
        Operand("target_ids", POSITIONS, host=True),
        Operand("weights", COMPARED, host=True),
    )
    targets: int = 1
    aggregate: str = "sum"

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x = operands[0]
        if x.rank != 2:
            raise ShapeError("x is no matrix", expected="[rows, columns]", found=str(x.type))
        if self.aggregate not in AGGREGATES:
            raise ModelError("no way to aggregate", expected=", ".join(AGGREGATES), found=self.aggregate)
        nodes, roots, starts, target_ids, weights = (_constant(operand) for operand in operands[1:])
        if len(starts) < 1 or starts[0] != 0 or starts[-1] != len(weights) or (np.diff(starts) < 0).any():
            raise ModelError("the entries of leaves do not follow each other", found=starts.tolist()[:4])
        if target_ids.shape != weights.shape or ((target_ids < 0) | (target_ids >= self.targets)).any():
            raise ModelError("a leaf gives to no target", expected=f"targets 0 to {self.targets - 1}")
        ForestTable(nodes, x.element).check(roots, len(starts) - 1, x.shape[1])
        return (TensorType(ElementType.F64, (x.shape[0], self.targets)),)

    def reference(self, x: Array, nodes: Array, roots: Array, starts: Array, ids: Array, weights: Array) -> Array:
        element = ElementType.from_dtype(x.dtype)
        leaves = ForestTable(nodes, element).leaves_of(roots, x)
        return aggregated(self.aggregate, leaves, starts, ids, weights, self.targets)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(71)
        x = random.integers(-3, 4, (11, 3)).astype(np.float32)
        x[2, 0] = x[5, 1] = x[7, 2] = np.nan
        leaves = (np.array([0, 1, 3, 3, 5]), np.array([1, 0, 1, 0, 1]), np.array([0.5, -1, 2, 4, 0.25], np.float32))
        single = (np.arange(5), np.zeros(4, np.int64), np.array([1, -2, 4, 8], np.float32))
        dense = (np.arange(0, 9, 2), np.tile([0, 1], 4), np.arange(8).astype(np.float32))
        cases = [(2, "sum", leaves), (2, "min", leaves), (2, "max", leaves), (1, "sum", single), (2, "sum", dense)]
        wide = x.astype(np.float64)
        return [
            *(Sample(cls(targets, mode), (x, *_sample_forest(x), *_entries(held))) for targets, mode, held in cases),
            Sample(cls(2), (wide, *_sample_forest(wide), *_entries(leaves))),
            Sample(cls(1), (wide[:1], *_sample_forest(wide), *_entries(single))),
            Sample(cls(2), (x[:0], *_sample_forest(x), *_entries(leaves))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.zeros((4, 3), np.float32)
        nodes, roots = _sample_forest(x)
        entries = _entries((np.arange(5), np.zeros(4, np.int64), np.zeros(4, np.float32)))
        backwards = nodes.copy()
        backwards[2] = 0
        return [
            ErrorSample(cls(), (x[0], nodes, roots, *entries), "x is no matrix"),
            ErrorSample(cls(1, "mean"), (x, nodes, roots, *entries), "no way to aggregate"),
            ErrorSample(cls(), (x[:, :2], nodes, roots, *entries), "too few columns"),
            ErrorSample(cls(), (x, nodes[:-1], roots, *entries), "not a table of trees"),
            ErrorSample(cls(), (x, backwards, roots, *entries), "leads nowhere"),
            ErrorSample(cls(), (x, nodes, roots + 1, *entries), "has no root"),
            ErrorSample(cls(), (x, nodes, roots, entries[0][:-1], *entries[1:]), "do not follow each other"),
            ErrorSample(cls(0), (x, nodes, roots, *entries), "gives to no target"),
        ]


def _constant(value: Value) -> Array:
    array = constant_array(value)
    if array is None or array.ndim != 1:
        raise UnsupportedError("trees are no constants", expected="constant vectors", found=str(value.type))
    return array


def _entries(arrays: tuple[Array, Array, Array]) -> tuple[Array, ...]:
    starts, ids, weights = arrays
    return starts.astype(np.int32), ids.astype(np.int32), weights


def _sample_forest(x: Array) -> tuple[Array, Array]:
    """Two trees over three features with four leaves; one node sends NaN low, one tree is a leaf alone."""
    element = ElementType.from_dtype(x.dtype)
    width, feature = node_words(element), feature_word(element)
    words = np.zeros((8, width), np.int32)
    nodes = [(0.5, 0, 1, 2), (-1.0, ~1, 3, 4), (1.0, 2, 4, 5), (0, 0, 3, 3), (1, 0, 4, 4), (2, 0, 5, 5)]
    for place, (value, column, low, high) in enumerate([*nodes, (3, 0, 6, 6), (0, 0, 7, 7)]):
        words[place, feature:] = (column, width * low, width * high)
        if low == place:
            words[place, 0] = value
        else:
            words[place, :feature] = np.array([value], x.dtype).view(np.int32)
    return words.ravel(), np.array([0, 6, 1], np.int32) * np.array(width, np.int32)
