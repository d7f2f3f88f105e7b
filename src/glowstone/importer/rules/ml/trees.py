"""TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.ml.domain import Array, as_float, cast_to, ml, rows_of
from glowstone.importer.rules.ml.forest import Entries, Forest, tables_of
from glowstone.importer.rules.ml.forest_attributes import AttributeNodes, read_arrays, read_nodes
from glowstone.importer.rules.ml.scores import (
    TRANSFORMS,
    Labels,
    largest_class,
    pair_of_scores,
    second_class,
    transform_named,
    transformed,
)
from glowstone.ops import Add, Div, Slice, Squeeze, TreeScores, Where
from glowstone.ops.constant import constant, scalar
from glowstone.types import ElementType

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""In the order of TreeEnsemble's numbers."""
MODES = {"AVERAGE": "sum", "SUM": "sum", "MIN": "min", "MAX": "max"}
PROBABLE = 0.5
"""A class is taken if its probability is larger."""


def tree_scores(node: OnnxNode, x: Value, forest: Forest, targets: int, aggregate: str = "SUM") -> Value:
    """[rows, targets] in float64: the weights of the leaves, aggregated."""
    if aggregate not in AGGREGATES:
        raise ModelError("no way to aggregate", expected=", ".join(AGGREGATES), found=aggregate)
    tables = [constant(node.builder, table) for table in tables_of(forest, x.element)]
    scores = node.emit(TreeScores(targets, MODES[aggregate]), x, *tables)
    if aggregate == "AVERAGE":
        return node.emit(Div(), scores, scalar(node.builder, max(1, len(forest.roots)), ElementType.F64))
    return scores


def _compared(node: OnnxNode, forest: Forest) -> Value:
    """x as what thresholds are compared with: float64 where either is, else float32."""
    return as_float(node, rows_of(node), ElementType.from_dtype(forest.thresholds.dtype))


@ml("TreeEnsembleRegressor")
def import_regressor(node: OnnxNode) -> Value:
    nodes = read_nodes(node)
    targets = node.integer("n_targets", 1)
    forest = nodes.forest(_entries(nodes, "target"))
    x = _compared(node, forest)
    scores = tree_scores(node, x, forest, targets, node.text("aggregate_function", "SUM"))
    scores = _with_base(node, scores, nodes.base_values)
    transform = transform_named(node.text("post_transform", "NONE"))
    return transformed(node, cast_to(node, scores, ElementType.F32), transform)


def _entries(nodes: AttributeNodes, prefix: str) -> Entries:
    ids = "class_ids" if prefix == "class" else "target_ids"
    return nodes.entries(f"{prefix}_treeids", f"{prefix}_nodeids", ids, f"{prefix}_weights")


def _with_base(node: OnnxNode, scores: Value, base: Array) -> Value:
    """Scores with a base value added to each column, where there are base values."""
    if base.size == 0:
        return scores
    if base.size != scores.shape[1]:
        raise ModelError("attribute base_values has another length", expected=scores.shape[1], found=base.size)
    return node.emit(Add(), scores, constant(node.builder, base.astype(np.float64)))


@ml("TreeEnsembleClassifier")
def import_classifier(node: OnnxNode) -> tuple[Value, ...]:
    """Labels and scores. Where all weights are for one of two classes, the scores are a pair made from one."""
    nodes = read_nodes(node)
    labels = Labels(node, "classlabels_int64s")
    transform = transform_named(node.text("post_transform", "NONE"))
    entries = _entries(nodes, "class")
    forest = nodes.forest(entries)
    x = _compared(node, forest)
    scores = tree_scores(node, x, forest, len(labels))
    given = np.unique(entries.targets)
    if len(labels) <= 2 and len(given) <= 1:
        return _binary(node, scores, entries, nodes.base_values, labels, transform)
    scores = _with_base(node, scores, nodes.base_values)
    candidates = scores
    if nodes.base_values.size == 0 and len(given) < len(labels):  # a class that nothing speaks for is never the label
        speaks = constant(node.builder, np.isin(np.arange(len(labels)), given))
        candidates = node.emit(Where(), speaks, scores, scalar(node.builder, -np.inf, ElementType.F64))
    index = largest_class(node, candidates)
    return labels.named(index), transformed(node, cast_to(node, scores, ElementType.F32), transform)


def _binary(
    node: OnnxNode, scores: Value, entries: Entries, base: Array, labels: Labels, transform: str
) -> tuple[Value, ...]:
    """Two classes (or one, and not that) with one score between them, which speaks for the second."""
    target = int(entries.targets[0]) if entries.targets.size else 0
    if base.size:
        if base.size > len(labels):
            raise ModelError("attribute base_values has another length", expected=len(labels), found=base.size)
        added = np.zeros(len(labels))
        added[target] = base[min(target, base.size - 1)]
        scores = node.emit(Add(), scores, constant(node.builder, added))
    is_probability = len(labels) == 2 and bool((entries.weights >= 0).all())
    score = _column(node, scores, target)
    index = second_class(node, node.emit(Squeeze((1,)), score), PROBABLE if is_probability else 0.0)
    if target == 0 and len(labels) == 2 and base.size < 2:
        pair = pair_of_scores(node, cast_to(node, score, ElementType.F32), transform, mixed=not is_probability)
        return labels.named(index), pair
    # As in ONNX Runtime: the class that no leaf names keeps the score 0
    return labels.named(index), transformed(node, cast_to(node, scores, ElementType.F32), transform)


def _column(node: OnnxNode, scores: Value, column: int) -> Value:
    """[rows, 1]."""
    if scores.shape[1] == 1:
        return scores
    bounds = (constant(node.builder, np.array([number])) for number in (column, column + 1, 1))
    return node.emit(Slice(), scores, *bounds)


@ml("TreeEnsemble", since=5)
def import_tree_ensemble(node: OnnxNode) -> Value:
    """Thresholds and weights of x's own element type; float16 is compared as float32."""
    forest, targets = read_arrays(node)
    aggregate, transform = node.integer("aggregate_function", 1), node.integer("post_transform", 0)
    if not 0 <= aggregate < len(AGGREGATES):
        raise ModelError("no way to aggregate", expected=f"0 to {len(AGGREGATES) - 1}", found=aggregate)
    if not 0 <= transform < len(TRANSFORMS):
        raise ModelError("no post transform of this number", expected=f"0 to {len(TRANSFORMS) - 1}", found=transform)
    x = _compared(node, forest)
    scores = tree_scores(node, x, forest, targets, AGGREGATES[aggregate])
    element = node.operand(0).element
    wide = cast_to(node, scores, element if element.is_float else ElementType.F32)
    return transformed(node, wide, TRANSFORMS[transform])
