"""Tree ensembles in every form, of trees made at random, against ONNX Runtime and the ONNX reference."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from helpers.ml import by_onnx_runtime, here, ml_model
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import GlowstoneError

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
MISSING = "missing_value_tracks_true"
FEATURES = 4
LEVELS = np.array([-2, -1, -0.5, 0, 0.5, 1, 2], np.float32)
"""Few numbers, for thresholds and data alike, so that equality is common."""

MEMBERS = np.array([0, 1, 2, 5], np.float32)
"""Of sets: ONNX Runtime has sets of small integers alone."""


@dataclass
class Trees:
    """Trees made at random: columns of nodes as versions 1 to 3 have them, and the (tree, node) pairs of leaves."""

    seed: int
    count: int = 5
    depth: int = 4
    modes: tuple[str, ...] = MODES
    missing: bool = True
    columns: dict[str, list] = field(default_factory=dict)
    leaves: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", MISSING)
        self.columns = {f"nodes_{name}": [] for name in names}
        for tree in range(self.count):
            self.number = itertools.count()
            self._grow(tree, self.depth)

    def _grow(self, tree: int, depth: int) -> int:
        number, random = next(self.number), self.random
        place = len(self.columns["nodes_modes"])
        for column in self.columns.values():
            column.append(0)
        is_leaf = depth == 0 or random.random() < 0.2
        entries = {
            "treeids": tree * 3 + 1,
            "nodeids": number,
            "featureids": int(random.integers(FEATURES)),
            "values": float(random.choice(LEVELS)),
            "modes": "LEAF" if is_leaf else str(random.choice(self.modes)),
            MISSING: int(self.missing and random.random() < 0.5),
        }
        if is_leaf:
            self.leaves.append((tree * 3 + 1, number))
        else:
            entries["falsenodeids"] = self._grow(tree, depth - 1)
            entries["truenodeids"] = self._grow(tree, depth - 1)
        for name, value in entries.items():
            self.columns[f"nodes_{name}"][place] = value
        return number

    def weights(self, kind: str, targets: int, dense: bool, positive: bool = False) -> dict[str, list]:
        """Attributes that say what leaves give: one weight of a target at random, or one of each."""
        given = [(*leaf, target) for leaf in self.leaves for target in self._targets(targets, dense)]
        numbers = self.random.standard_normal(len(given)).round(2)
        return {
            f"{kind}_treeids": [tree for tree, _, _ in given],
            f"{kind}_nodeids": [node for _, node, _ in given],
            f"{kind}_ids": [target for _, _, target in given],
            f"{kind}_weights": [float(number) for number in (np.abs(numbers) / 10 if positive else numbers)],
        }

    def _targets(self, targets: int, dense: bool) -> list[int]:
        return list(range(targets)) if dense else [int(self.random.integers(targets))]


def rows(seed: int, count: int, missing: bool = True, dtype=np.float32) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.choice(LEVELS, (count, FEATURES)).astype(dtype)
    if missing and np.dtype(dtype).kind == "f":
        x[random.random(x.shape) < 0.1] = np.nan
    return x


def assert_agrees(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [False, True])
def test_every_way_to_branch(mode, missing):
    trees = Trees(1, modes=(mode,), missing=missing)
    attributes = {**trees.columns, **trees.weights("target", 1, dense=True), "n_targets": 1}
    feeds = {"x": rows(2, 100)}
    model = ml_model("TreeEnsembleRegressor", feeds, {"y": np.float32}, **attributes)
    assert_agrees(here(model, feeds), by_onnx_runtime(model, feeds))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(("targets", "dense"), [(1, True), (3, True), (3, False)])
@pytest.mark.parametrize("count", [1, 7, 83])
def test_regressors(aggregate, targets, dense, count):
    trees = Trees(3, count=9)
    attributes = {**trees.columns, **trees.weights("target", targets, dense), "n_targets": targets}
    attributes["aggregate_function"] = aggregate
    if dense:  # else ONNX Runtime forgets the base values of rows that no leaf gives anything to
        attributes["base_values"] = [0.5, -1.0, 2.0][:targets]
    feeds = {"x": rows(4, count)}
    model = ml_model("TreeEnsembleRegressor", feeds, {"y": np.float32}, version=1, **attributes)
    assert_agrees(here(model, feeds), by_onnx_runtime(model, feeds))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_post_transforms_of_regressors(transform, targets):
    trees = Trees(5)
    attributes = {**trees.columns, **trees.weights("target", targets, dense=True, positive=True)}
    attributes |= {"n_targets": targets, "post_transform": transform}
    feeds = {"x": rows(6, 20)}
    model = ml_model("TreeEnsembleRegressor", feeds, {"y": np.float32}, **attributes)
    assert_agrees(here(model, feeds), by_onnx_runtime(model, feeds))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
@pytest.mark.parametrize("kind", ["class", "target"])
def test_element_types_of_x(kind, dtype):
    """ONNX Runtime has no regressors of integers: it is given the floats."""
    trees = Trees(7)
    attributes = {**trees.columns, **trees.weights(kind, 3, dense=True)}
    feeds = {"x": rows(8, 50, dtype=dtype)}
    if kind == "target":
        name, outputs = "TreeEnsembleRegressor", {"y": np.float32}
        attributes["n_targets"] = 3
    else:
        name, outputs = "TreeEnsembleClassifier", {"label": np.int64, "scores": np.float32}
        attributes["classlabels_int64s"] = [0, 1, 2]
    floats = {"x": feeds["x"].astype(np.float32)}
    expected = by_onnx_runtime(ml_model(name, floats, outputs, **attributes), floats)
    assert_agrees(here(ml_model(name, feeds, outputs, **attributes), feeds), expected)


def test_float64_is_compared_as_such():
    trees = Trees(7)
    attributes = {**trees.columns, **trees.weights("target", 1, dense=True), "n_targets": 1}
    for name in ("nodes_values", "target_weights"):
        attributes[f"{name}_as_tensor"] = numpy_helper.from_array(np.array(attributes.pop(name)) + 1e-9)
    feeds = {"x": rows(8, 50, dtype=np.float64) + np.tile([0, 1e-9, 2e-9, 1e-10, 3e-9], 10)[:, None]}
    model = ml_model("TreeEnsembleRegressor", feeds, {"y": np.float32}, **attributes)
    assert_agrees(here(model, feeds), by_onnx_runtime(model, feeds))


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("labels", [[7, 3, 5], [0, 1, 2, 3]])
@pytest.mark.parametrize("base", [False, True])
def test_classifiers_of_many(transform, labels, base):
    trees = Trees(9)
    attributes = {**trees.columns, **trees.weights("class", len(labels), dense=True), "post_transform": transform}
    attributes["classlabels_int64s"] = labels
    if base:
        attributes["base_values"] = [0.25, -0.5, 0.125, 1.0][: len(labels)]
    feeds = {"x": rows(10, 64)}
    model = ml_model("TreeEnsembleClassifier", feeds, {"label": np.int64, "scores": np.float32}, **attributes)
    assert_agrees(here(model, feeds), by_onnx_runtime(model, feeds))


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("base", [[], [0.25]])
@pytest.mark.parametrize(("labels", "target"), [([4, 9], 0), ([4, 9], 1), ([1], 0)])
def test_classifiers_of_two(transform, positive, base, labels, target):
    trees = Trees(11)
    attributes = {**trees.columns, **trees.weights("class", 1, dense=True, positive=positive)}
    attributes["class_ids"] = [target for _ in attributes["class_ids"]]
    attributes |= {"post_transform": transform, "classlabels_int64s": labels}
    if base and target == 0:
        attributes["base_values"] = base
    feeds = {"x": rows(12, 64)}
    model = ml_model("TreeEnsembleClassifier", feeds, {"label": np.int64, "scores": np.float32}, **attributes)
    assert_agrees(here(model, feeds), by_onnx_runtime(model, feeds))


def test_two_classes_with_weights_of_both_are_told_apart_by_the_larger():
    """ONNX Runtime names the classes 1 and 0 here, whatever their labels: the reference is right."""
    trees = Trees(13, missing=False)
    attributes = {**trees.columns, **trees.weights("class", 2, dense=True), "classlabels_int64s": [4, 9]}
    feeds = {"x": rows(14, 64, missing=False)}
    model = ml_model("TreeEnsembleClassifier", feeds, {"label": np.int64, "scores": np.float32}, **attributes)
    assert_agrees(here(model, feeds), ReferenceEvaluator(model).run(None, feeds))


# Version 5


def arrays(seed: int, dtype, targets: int, members: bool) -> dict:
    """Attributes of TreeEnsemble: two trees of depth 3, nodes in any order."""
    random = np.random.default_rng(seed)
    branches, leaves, held = [], [], []

    def grow(depth: int) -> tuple[int, bool]:
        if depth == 0 or (depth < 3 and random.random() < 0.2):
            leaves.append((float(random.standard_normal()), int(random.integers(targets))))
            return len(leaves) - 1, True
        place = len(branches)
        branches.append(None)
        mode = int(random.integers(7 if members else 6))
        branches[place] = [mode, int(random.integers(FEATURES)), float(random.choice(LEVELS)), 0, 0, 0, 0]
        if mode == 6:
            held.append((place, [*random.choice(MEMBERS, int(random.integers(1, 4)), replace=False), np.nan]))
        true, false = grow(depth - 1), grow(depth - 1)
        branches[place][3:] = [true[0], int(true[1]), false[0], int(false[1])]
        return place, False

    roots = [grow(3)[0] for _ in range(3)]
    modes, features, splits, true, true_leaf, false, false_leaf = zip(*branches, strict=True)
    attributes = {
        "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
        "nodes_featureids": list(features),
        "nodes_splits": numpy_helper.from_array(np.array(splits, dtype)),
        "nodes_truenodeids": list(true),
        "nodes_trueleafs": list(true_leaf),
        "nodes_falsenodeids": list(false),
        "nodes_falseleafs": list(false_leaf),
        "nodes_missing_value_tracks_true": random.integers(0, 2, len(branches)).tolist(),
        "leaf_weights": numpy_helper.from_array(np.array([weight for weight, _ in leaves], dtype)),
        "leaf_targetids": [target for _, target in leaves],
        "tree_roots": roots,
        "n_targets": targets,
    }
    if members:
        flat = np.concatenate([numbers for _, numbers in sorted(held)])
        attributes["membership_values"] = numpy_helper.from_array(flat.astype(dtype))
    return attributes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
@pytest.mark.parametrize("members", [False, True])
def test_tree_ensembles_of_arrays(dtype, aggregate, members):
    attributes = {**arrays(15 + aggregate, dtype, 2, members), "aggregate_function": aggregate}
    feeds = {"x": rows(16, 40, dtype=dtype)}
    model = ml_model("TreeEnsemble", feeds, {"y": dtype}, version=5, **attributes)
    assert_agrees(here(model, feeds), by_onnx_runtime(model, feeds))


def test_float16():
    attributes = arrays(17, np.float16, 1, members=False)
    feeds = {"x": rows(18, 30, missing=False, dtype=np.float16)}
    model = ml_model("TreeEnsemble", feeds, {"y": np.float16}, version=5, **attributes)
    (found,) = here(model, feeds)
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_allclose(found, expected.astype(np.float16), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("shape", [(FEATURES,), (0, FEATURES)])
def test_a_vector_is_one_row_and_no_rows_are_none(shape):
    trees = Trees(19)
    attributes = {**trees.columns, **trees.weights("target", 1, dense=True), "n_targets": 1}
    feeds = {"x": np.ones(shape, np.float32)}
    model = ml_model("TreeEnsembleRegressor", feeds, {"y": np.float32}, **attributes)
    assert here(model, feeds)[0].shape == (1 if len(shape) == 1 else 0, 1)


def test_results_do_not_depend_on_threads_and_one_compiled_model_takes_every_batch():
    trees = Trees(21, count=400, depth=6)
    attributes = {**trees.columns, **trees.weights("target", 2, dense=True), "n_targets": 2}
    x = rows(22, 1000)
    model = ml_model("TreeEnsembleRegressor", {"x": x}, {"y": np.float32}, **attributes)
    expected = by_onnx_runtime(model, {"x": x})[0]
    several = [glowstone.compile(model, threads=threads) for threads in (1, 2)]
    for count in (1, 2, 7, 8, 9, 100, 1000):
        first, second = (compiled.run({"x": x[:count]})["y"] for compiled in several)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(first, expected[:count], rtol=1e-4, atol=1e-4)


def broken(**changes):
    trees = Trees(23, count=2)
    attributes = {**trees.columns, **trees.weights("target", 1, dense=True), "n_targets": 1}
    for name, change in changes.items():
        attributes[name] = change(attributes[name])
    return attributes


@pytest.mark.parametrize(
    ("message", "attributes"),
    [
        ("lead in a circle", broken(nodes_truenodeids=lambda ids: [0 for _ in ids])),
        ("not there", broken(nodes_truenodeids=lambda ids: [999 for _ in ids])),
        ("not there", broken(target_nodeids=lambda ids: [-5 for _ in ids])),
        ("cannot be", broken(nodes_featureids=lambda ids: [-1 for _ in ids])),
        ("too few columns", broken(nodes_featureids=lambda ids: [FEATURES for _ in ids])),
        ("another length", broken(nodes_values=lambda values: values[:-1])),
        ("gives to no target", broken(target_ids=lambda ids: [1 for _ in ids])),
        ("unknown mode", broken(nodes_modes=lambda modes: ["BRANCH" for _ in modes])),
        ("one number", broken(nodes_nodeids=lambda ids: [0 for _ in ids])),
    ],
)
def test_broken_trees_are_refused(message, attributes):
    feeds = {"x": rows(24, 3)}
    model = ml_model("TreeEnsembleRegressor", feeds, {"y": np.float32}, **attributes)
    with pytest.raises(GlowstoneError, match=message):
        glowstone.compile(model)
