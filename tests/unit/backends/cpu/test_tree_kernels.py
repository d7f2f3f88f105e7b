"""Walks through trees, lookups and couplings as machine code, on guarded memory."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.lir import Lookup, PairwiseCoupling, TreeSums
from glowstone.scalar.forest import feature_word, node_words
from glowstone.types import ElementType

FEATURES = 5
F64, I32 = ElementType.F64, ElementType.I32


def forest(element, trees, depth, nan_low, seed=1):
    """(words, roots, leaves): complete trees with thresholds in [-2, 2]."""
    random = np.random.default_rng(seed)
    width, first = node_words(element), feature_word(element)
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    words = np.zeros((trees, nodes, width), np.int32)
    places = width * np.arange(trees * nodes).reshape(trees, nodes)
    thresholds = random.uniform(-2, 2, (trees, inner, 1)).astype(element.dtype)
    words[:, :inner, :first] = thresholds.view(np.int32)
    features = random.integers(FEATURES, size=(trees, inner))
    words[:, :inner, first] = np.where(nan_low & (random.random(features.shape) < 0.5), ~features, features)
    words[:, :inner, first + 1] = places[:, 1:nodes:2]
    words[:, :inner, first + 2] = places[:, 2:nodes:2]
    words[:, inner:, 0] = np.arange(trees * (nodes - inner)).reshape(trees, nodes - inner)
    words[:, inner:, first + 1] = words[:, inner:, first + 2] = places[:, inner:]
    return words.ravel(), places[:, 0].astype(np.int32), trees * (nodes - inner)


def leaves(form, count, targets, weights):
    random = np.random.default_rng(2)
    if form == "sparse":
        starts = np.concatenate([[0], np.cumsum(random.integers(0, 4, count))])
        ids = random.integers(targets, size=starts[-1])
    else:
        starts, ids = np.arange(0, count * targets + 1, targets), np.tile(np.arange(targets), count)
    return starts.astype(np.int32), ids.astype(np.int32), random.standard_normal(len(ids)).astype(weights)


def check_forest(operation, rows, trees, targets, parts=1, element=ElementType.F32, depth=4):
    words, roots, count = forest(element, trees, depth, operation.nan_low)
    x = sample((rows, FEATURES), element, -2.5, 2.5)
    if rows:
        x[:: max(rows // 3, 1), 1] = np.nan
    storage = Storage()
    y = storage.result((parts, rows, targets), F64)
    tables = (words, roots, *leaves(operation.form, count, targets, element.dtype))
    check(operation, [y, storage.add(x, padding=(1, 2)), *map(storage.add, tables)], storage)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 71, 200])
@pytest.mark.parametrize("nan_low", [False, True])
def test_numbers_of_rows(rows, nan_low):
    check_forest(TreeSums("sum", "single", nan_low), rows, trees=9, targets=1)


@pytest.mark.parametrize("trees", [0, 1, 8, 13])
@pytest.mark.parametrize(("form", "targets"), [("dense", 3), ("sparse", 3), ("single", 1)])
@pytest.mark.parametrize("parts", [1, 3])
def test_numbers_of_trees_forms_of_leaves_and_parts(trees, form, targets, parts):
    check_forest(TreeSums("sum", form, True), 11, trees, targets, parts)


@pytest.mark.parametrize("aggregate", ["min", "max"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_extremes(aggregate, form):
    check_forest(TreeSums(aggregate, form, True), 19, 6, 2)


@pytest.mark.parametrize("depth", [0, 1, 9])
def test_depths_and_float64(depth):
    check_forest(TreeSums("sum", "dense", True), 17, 5, 2, element=F64, depth=depth)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 31, 32, 33, 1000])
@pytest.mark.parametrize("element", [ElementType.F32, F64, ElementType.I64, ElementType.I16], ids=str)
def test_lookups(count, element):
    keys = np.unique(sample((count,), element, -9, 9))
    if element.is_float and len(keys) > 1:
        keys[-1] = np.nan
    x = np.concatenate([keys, sample((50,), element, -9, 9)])
    storage = Storage()
    values = np.arange(len(keys) + 1, dtype=np.int32)
    views = [storage.result(x.shape, I32), *map(storage.add, (x, keys, values))]
    check(Lookup(), views, storage)


@pytest.mark.parametrize("classes", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [0, 1, 30])
def test_couplings(classes, rows):
    storage = Storage()
    pairs = sample((rows, classes * (classes - 1) // 2), F64, 1e-7, 1 - 1e-7)
    check(PairwiseCoupling(), [storage.result((rows, classes), F64), storage.add(pairs)], storage)
