"""Trees as files have them, made into tables that kernels walk.

Every way to branch becomes `x <= threshold`: "less" by the next smaller threshold, "greater" by exchanging the
branches, equality and membership of a set by a search of the set. Where NaN goes is kept with each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import LimitError, ModelError
from glowstone.scalar.forest import LARGEST_TABLE, feature_word, node_words
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
"""Modes of nodes; the numbers but the last are those of TreeEnsemble."""


@dataclass(frozen=True)
class Entries:
    """What leaves give: of each entry the leaf (by number), the target, and the weight."""

    leaves: Array
    targets: Array
    weights: Array


@dataclass(frozen=True)
class Forest:
    """Nodes as columns. `on_true` and `on_false` are rows of other nodes; `leaf` is a leaf's number.

    `members` are the sets of MEMBER nodes in the order of these. Thresholds are float32 or float64.
    """

    modes: Array
    features: Array
    thresholds: Array
    on_true: Array
    on_false: Array
    nan_is_true: Array
    leaf: Array
    roots: Array
    members: tuple[Array, ...]
    leaf_count: int
    entries: Entries


@dataclass
class _Branches:
    """Nodes in their one form: low where `x[feature] <= threshold`, or where x is NaN and `nan_low`, else high."""

    features: Array
    thresholds: Array
    low: Array
    high: Array
    nan_low: Array
    leaf: Array

    def extend(self, added: Sequence[tuple[int, float, int, int, bool]]) -> None:
        """Append nodes (feature, threshold, low, high, nan_low)."""
        if not added:
            return
        columns = list(zip(*added, strict=True))
        names = ("features", "thresholds", "low", "high", "nan_low")
        for name, column in zip(names, columns, strict=True):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.array(column, old.dtype)]))
        self.leaf = np.concatenate([self.leaf, np.full(len(added), -1)])


def tables_of(forest: Forest, element: ElementType) -> tuple[Array, ...]:
    """Nodes, roots, starts, target ids and weights, as `TreeScores` takes them.

    Raises:
        ModelError: the nodes form no trees.
        LimitError: they are more than a table holds.
    """
    branches = _branches(forest, element)
    order, roots = _order(branches, forest.roots)
    width = node_words(element)
    if len(order) * width > LARGEST_TABLE:
        raise LimitError("too many nodes", expected=f"at most {LARGEST_TABLE // width}", found=len(order))
    places = np.full(len(branches.low), -1)
    places[order] = np.arange(len(order)) * width
    is_leaf = branches.leaf[order] >= 0
    features = np.where(branches.nan_low, ~branches.features, branches.features)[order]
    words = np.zeros((len(order), width), np.int32)
    first = feature_word(element)
    words[:, :first] = branches.thresholds[order].astype(element.dtype).view(np.int32).reshape(-1, first)
    words[is_leaf, 0] = branches.leaf[order][is_leaf]
    words[:, first] = np.where(is_leaf, 0, features)
    for word, links in ((first + 1, branches.low), (first + 2, branches.high)):
        words[:, word] = np.where(is_leaf, places[order], places[links[order]])
    starts = np.zeros(forest.leaf_count + 1, np.int64)
    np.cumsum(np.bincount(forest.entries.leaves, minlength=forest.leaf_count), out=starts[1:])
    by_leaf = np.argsort(forest.entries.leaves, kind="stable")
    ids = forest.entries.targets[by_leaf].astype(np.int32)
    weights = np.ascontiguousarray(forest.entries.weights[by_leaf])
    return words.ravel(), places[roots].astype(np.int32), starts.astype(np.int32), ids, weights


def _branches(forest: Forest, element: ElementType) -> _Branches:
    modes, kind = forest.modes, element.dtype
    given = forest.thresholds.astype(kind)
    exclusive = np.isin(modes, (LT, GTE))
    exchanged = np.isin(modes, (GT, GTE))
    lowest = np.array(-np.inf, kind)
    thresholds = np.where(exclusive, np.nextafter(given, lowest), given).astype(kind)
    low = np.where(exchanged, forest.on_false, forest.on_true)
    high = np.where(exchanged, forest.on_true, forest.on_false)
    nan_low = forest.nan_is_true != exchanged
    branches = _Branches(forest.features.copy(), thresholds, low, high, nan_low, forest.leaf)
    never = np.isnan(given) | (exclusive & (given == lowest))  # no number is as low as such a threshold
    _go_high(branches, forest, np.isin(modes, (LEQ, LT, GTE, GT)) & never, exchanged & ~np.isnan(given))
    _search_sets(branches, forest, given)
    return branches


def _go_high(branches: _Branches, forest: Forest, rows: Array, holds: Array) -> None:
    """Nodes whose comparison holds for every number, or for none: only NaN may go another way."""
    branches.thresholds[rows] = np.inf
    branches.low[rows] = np.where(holds, forest.on_true, forest.on_false)[rows]
    branches.high[rows] = np.where(forest.nan_is_true, forest.on_true, forest.on_false)[rows]
    branches.nan_low[rows] = False


def _search_sets(branches: _Branches, forest: Forest, given: Array) -> None:
    """EQ, NEQ and MEMBER nodes, each as a balanced search."""
    added: list[tuple[int, float, int, int, bool]] = []
    sets = iter(forest.members)
    size = len(branches.low)
    for row in np.flatnonzero(np.isin(forest.modes, (EQ, NEQ, MEMBER))).tolist():
        mode = forest.modes[row]
        members = next(sets) if mode == MEMBER else given[row : row + 1]
        inside, outside = int(forest.on_true[row]), int(forest.on_false[row])
        nan_inside = bool(forest.nan_is_true[row])
        if mode == NEQ:
            inside, outside, nan_inside = outside, inside, False  # NaN is unequal to everything
        search = _Search(int(forest.features[row]), inside, outside, size + len(added))
        members = np.unique(members[~np.isnan(members)].astype(given.dtype))
        first = search.add(members, nan_inside)
        for column, value in zip(("thresholds", "low", "high", "nan_low"), first[1:], strict=True):
            getattr(branches, column)[row] = value
        added += search.nodes
    branches.extend(added)


@dataclass
class _Search:
    """Nodes that find whether a feature is among sorted members; new nodes are numbered from `base`."""

    feature: int
    inside: int
    outside: int
    base: int

    def __post_init__(self) -> None:
        self.nodes: list[tuple[int, float, int, int, bool]] = []

    def add(self, members: Array, nan_inside: bool) -> tuple[int, float, int, int, bool]:
        """The root of the search; all below it are added to `nodes`."""
        if len(members) == 0:
            return (self.feature, np.inf, self.outside, self.inside if nan_inside else self.outside, False)
        middle = len(members) // 2
        member = members[middle]
        high = self._number(members[middle + 1 :])
        if np.isneginf(member):
            return (self.feature, float(member), self.inside, high, nan_inside)
        below = self._number(members[:middle])
        previous = np.nextafter(member, np.array(-np.inf, members.dtype))
        exact = self._append((self.feature, float(previous), below, self.inside, False))
        return (self.feature, float(member), exact, high, nan_inside)

    def _number(self, members: Array) -> int:
        if len(members) == 0:
            return self.outside
        return self._append(self.add(members, False))

    def _append(self, node: tuple[int, float, int, int, bool]) -> int:
        self.nodes.append(node)
        return self.base + len(self.nodes) - 1


def _order(branches: _Branches, roots: Array) -> tuple[Array, Array]:
    """The nodes that roots lead to, tree by tree and level by level, each before those it leads to; and the roots.

    Raises:
        ModelError: nodes lead to each other in a circle.
    """
    reached = _reached(branches, roots)
    parents = np.zeros(len(branches.low), np.int64)
    inner = np.flatnonzero(reached & (branches.leaf < 0))
    for links in (branches.low, branches.high):
        parents += np.bincount(links[inner], minlength=len(parents))
    tree, level = np.full(len(parents), -1), np.zeros(len(parents), np.int64)
    np.maximum.at(tree, roots, np.arange(len(roots)))
    frontier, depth, done = np.flatnonzero(reached & (parents == 0)), 0, 0
    while len(frontier):
        done += len(frontier)
        level[frontier] = depth
        depth += 1
        inner = frontier[branches.leaf[frontier] < 0]
        for links in (branches.low, branches.high):
            np.maximum.at(tree, links[inner], tree[inner])
            np.subtract.at(parents, links[inner], 1)
        following = np.unique(np.concatenate([branches.low[inner], branches.high[inner]]))
        frontier = following[parents[following] == 0]
    nodes = np.flatnonzero(reached)
    if done != len(nodes):
        raise ModelError("nodes of a tree lead in a circle", expected="trees", found=f"{len(nodes) - done} such nodes")
    return nodes[np.lexsort((level[nodes], tree[nodes]))], roots


def _reached(branches: _Branches, roots: Array) -> Array:
    reached = np.zeros(len(branches.low), bool)
    frontier = np.unique(roots)
    while len(frontier):
        reached[frontier] = True
        inner = frontier[branches.leaf[frontier] < 0]
        following = np.unique(np.concatenate([branches.low[inner], branches.high[inner]]))
        frontier = following[~reached[following]]
    return reached
