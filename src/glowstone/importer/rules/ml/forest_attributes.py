"""Attributes of tree ensembles: numbered nodes (versions 1 and 3), and arrays of branches and leaves (version 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowstone.errors import ModelError
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.ml.domain import Array, numbers
from glowstone.importer.rules.ml.forest import EQ, GT, GTE, LEAF, LEQ, LT, MEMBER, NEQ, Entries, Forest

MODE_NAMES = {
    "BRANCH_LEQ": LEQ,
    "BRANCH_LT": LT,
    "BRANCH_GTE": GTE,
    "BRANCH_GT": GT,
    "BRANCH_EQ": EQ,
    "BRANCH_NEQ": NEQ,
    "LEAF": LEAF,
}


@dataclass(frozen=True)
class _Names:
    """The names of nodes, (tree, number), as single sorted keys, and the rows they stand at."""

    trees: Array
    numbers: Array
    keys: Array
    rows: Array

    @staticmethod
    def of(trees: Array, node_numbers: Array) -> _Names:
        """Raises ModelError where two nodes have one name."""
        distinct_trees, distinct_numbers = np.unique(trees), np.unique(node_numbers)
        keys = np.searchsorted(distinct_trees, trees) * len(distinct_numbers)
        keys += np.searchsorted(distinct_numbers, node_numbers)
        rows = np.argsort(keys, kind="stable")
        if (np.diff(keys[rows]) == 0).any():
            raise ModelError("two nodes of a tree have one number", expected="distinct nodes_nodeids")
        return _Names(distinct_trees, distinct_numbers, keys[rows], rows)

    def rows_of(self, trees: Array, node_numbers: Array, name: str) -> Array:
        """The rows of nodes by name.

        Raises:
            ModelError: there is no such node.
        """
        if trees.shape != node_numbers.shape:
            raise ModelError(f"attribute {name} has another length", expected=trees.size, found=node_numbers.size)
        if trees.size == 0:
            return np.zeros(0, np.int64)
        if self.keys.size == 0:
            raise ModelError(f"attribute {name} names a node that is not there", found=int(node_numbers[0]))
        tree = np.minimum(np.searchsorted(self.trees, trees), len(self.trees) - 1)
        number = np.minimum(np.searchsorted(self.numbers, node_numbers), len(self.numbers) - 1)
        place = np.minimum(np.searchsorted(self.keys, tree * len(self.numbers) + number), len(self.keys) - 1)
        found = (self.trees[tree] == trees) & (self.numbers[number] == node_numbers)
        found &= self.keys[place] == tree * len(self.numbers) + number
        if not found.all():
            missing = int(np.flatnonzero(~found)[0])
            raise ModelError(
                f"attribute {name} names a node that is not there",
                expected="a node of the tree",
                found=f"node {node_numbers[missing]} of tree {trees[missing]}",
            )
        return self.rows[place]


@dataclass(frozen=True)
class AttributeNodes:
    """The nodes of versions 1 and 3, one a row; `leaf` numbers the leaves in order."""

    node: OnnxNode
    names: _Names
    modes: Array
    columns: dict[str, Array]
    leaf: Array
    roots: Array
    base_values: Array

    def entries(self, trees: str, node_numbers: str, targets: str, weights: str) -> Entries:
        """What leaves give, from the attributes of these names; what other nodes would give is left out."""
        held = float_attribute(self.node, weights)
        rows = self.names.rows_of(_integers(self.node, trees), _integers(self.node, node_numbers), node_numbers)
        ids = _of_length(targets, _integers(self.node, targets), len(rows))
        held = _of_length(weights, held, len(rows))
        at_leaf = self.leaf[rows] >= 0
        return Entries(self.leaf[rows][at_leaf], ids[at_leaf], held[at_leaf])

    def forest(self, entries: Entries) -> Forest:
        columns = self.columns
        return Forest(
            modes=self.modes,
            features=columns["features"],
            thresholds=columns["thresholds"],
            on_true=columns["on_true"],
            on_false=columns["on_false"],
            nan_is_true=columns["nan_is_true"] != 0,
            leaf=self.leaf,
            roots=self.roots,
            members=(),
            leaf_count=int(self.leaf.max(initial=-1)) + 1,
            entries=entries,
        )


def read_nodes(node: OnnxNode) -> AttributeNodes:
    """The nodes of a TreeEnsembleClassifier or TreeEnsembleRegressor. The first node of a tree is its root.

    Raises:
        ModelError: attributes that do not go together, or an unknown mode.
    """
    trees = _integers(node, "nodes_treeids")
    count = len(trees)
    names = _Names.of(trees, _of_length("nodes_nodeids", _integers(node, "nodes_nodeids"), count))
    modes = _modes(node, count)
    is_branch = modes != LEAF
    columns = {
        "features": _of_length("nodes_featureids", _integers(node, "nodes_featureids"), count),
        "thresholds": _of_length("nodes_values", float_attribute(node, "nodes_values"), count),
        "nan_is_true": _integers(node, "nodes_missing_value_tracks_true"),
    }
    if columns["nan_is_true"].size == 0:
        columns["nan_is_true"] = np.zeros(count, np.int64)
    _of_length("nodes_missing_value_tracks_true", columns["nan_is_true"], count)
    for side, name in (("on_true", "nodes_truenodeids"), ("on_false", "nodes_falsenodeids")):
        links = _of_length(name, _integers(node, name), count)
        columns[side] = np.arange(count)
        columns[side][is_branch] = names.rows_of(trees[is_branch], links[is_branch], name)
    check_features(columns["features"][is_branch])
    leaf = np.where(is_branch, -1, np.cumsum(~is_branch) - 1)
    _, roots = np.unique(trees, return_index=True)
    return AttributeNodes(node, names, modes, columns, leaf, np.sort(roots), float_attribute(node, "base_values"))


def _modes(node: OnnxNode, count: int) -> Array:
    texts = node.text_list("nodes_modes") or ()
    unknown = set(texts) - set(MODE_NAMES)
    if unknown:
        raise ModelError("a node has an unknown mode", expected=", ".join(MODE_NAMES), found=", ".join(sorted(unknown)))
    return _of_length("nodes_modes", np.array([MODE_NAMES[text] for text in texts], np.int64), count)


def read_arrays(node: OnnxNode) -> tuple[Forest, int]:
    """The forest of a TreeEnsemble, and its number of targets. Rows are the branches, then the leaves.

    Raises:
        ModelError: attributes that do not go together, or an unknown mode.
    """
    splits, weights = _tensor(node, "nodes_splits"), _tensor(node, "leaf_weights")
    modes = _of_length("nodes_modes", _tensor(node, "nodes_modes").astype(np.int64), len(splits))
    if ((modes < LEQ) | (modes > MEMBER)).any():
        raise ModelError("a node has an unknown mode", expected=f"{LEQ} to {MEMBER}", found=modes.tolist()[:8])
    branches, leaves = len(splits), len(weights)
    features = _of_length("nodes_featureids", _integers(node, "nodes_featureids"), branches)
    check_features(features)
    nan_is_true = _integers(node, "nodes_missing_value_tracks_true")
    nan_is_true = nan_is_true if nan_is_true.size else np.zeros(branches, np.int64)
    links = []
    for ids, flags in (("nodes_truenodeids", "nodes_trueleafs"), ("nodes_falsenodeids", "nodes_falseleafs")):
        is_leaf = _of_length(flags, _integers(node, flags), branches) != 0
        numbers_of = _of_length(ids, _integers(node, ids), branches)
        _within(ids, numbers_of, np.where(is_leaf, leaves, branches))
        links.append(np.concatenate([numbers_of + np.where(is_leaf, branches, 0), np.zeros(leaves, np.int64)]))
    roots = _integers(node, "tree_roots")
    _within("tree_roots", roots, np.full(len(roots), branches))
    element = np.float64 if np.float64 in (splits.dtype, weights.dtype) else np.float32
    targets = _of_length("leaf_targetids", _integers(node, "leaf_targetids"), leaves)
    rest = np.zeros(leaves, np.int64)
    forest = Forest(
        modes=np.concatenate([modes, np.full(leaves, LEAF)]),
        features=np.concatenate([features, rest]),
        thresholds=np.concatenate([splits, rest]).astype(element),
        on_true=links[0],
        on_false=links[1],
        nan_is_true=np.concatenate(
            [_of_length("nodes_missing_value_tracks_true", nan_is_true, branches) != 0, rest != 0]
        ),
        leaf=np.concatenate([np.full(branches, -1), np.arange(leaves)]),
        roots=roots,
        members=_members(node, int((modes == MEMBER).sum()), element),
        leaf_count=leaves,
        entries=Entries(np.arange(leaves), targets, weights.astype(element)),
    )
    return forest, node.integer("n_targets", 1)


def _members(node: OnnxNode, count: int, element: type) -> tuple[Array, ...]:
    """The sets of MEMBER nodes: runs of numbers, each ended by a NaN (which the last may lack)."""
    held = node.tensor("membership_values")
    flat: Array = np.zeros(0, element) if held is None else held.array.ravel().astype(element)
    ends = np.flatnonzero(np.isnan(flat))
    sets = [part[~np.isnan(part)] for part in np.split(flat, ends)]
    if ends.size and len(sets[-1]) == 0:
        sets = sets[:-1]
    if count == 0 and flat.size == 0:
        return ()
    if len(sets) != count:
        raise ModelError("not one set for every node that asks for membership", expected=count, found=len(sets))
    return tuple(sets)


def check_features(features: Array) -> None:
    """Raise ModelError for a feature that no matrix has."""
    if ((features < 0) | (features > np.iinfo(np.int32).max)).any():
        raise ModelError("a node reads a feature that cannot be", expected="0 or more", found=int(features.min()))


def float_attribute(node: OnnxNode, name: str) -> Array:
    """Floats, from the list of this name or from the tensor that stands for it since version 3."""
    tensor = node.tensor(f"{name}_as_tensor")
    return numbers(node, name) if tensor is None else _float_array(name, tensor.array)


def _tensor(node: OnnxNode, name: str) -> Array:
    tensor = node.tensor(name)
    if tensor is None:
        raise ModelError(f"attribute {name} is missing", expected="a tensor")
    return tensor.array.ravel() if name == "nodes_modes" else _float_array(name, tensor.array)


def _float_array(name: str, array: Array) -> Array:
    if array.dtype.kind != "f":
        raise ModelError(f"attribute {name} has another element type", expected="floats", found=array.dtype)
    return array.ravel() if array.dtype == np.float64 else array.ravel().astype(np.float32)


def _integers(node: OnnxNode, name: str) -> Array:
    return np.array(node.integer_list(name) or (), np.int64)


def _of_length(name: str, array: Array, length: int) -> Array:
    if len(array) != length:
        raise ModelError(f"attribute {name} has another length", expected=length, found=len(array))
    return array


def _within(name: str, array: Array, limits: Array) -> None:
    if ((array < 0) | (array >= limits)).any():
        raise ModelError(f"attribute {name} names a node that is not there", found=array.tolist()[:8])
