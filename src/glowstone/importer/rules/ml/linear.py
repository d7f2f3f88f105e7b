"""LinearClassifier and LinearRegressor."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.ml.domain import (
    Array,
    as_float,
    cast_to,
    ml,
    numbers,
    required_numbers,
    rows_of,
    shaped,
)
from glowstone.importer.rules.ml.scores import (
    Labels,
    largest_class,
    pair_of_scores,
    second_class,
    transform_named,
    transformed,
)
from glowstone.ops import Add, MatMul, Squeeze
from glowstone.ops.constant import constant
from glowstone.types import ElementType


def linear_scores(node: OnnxNode, x: Value, coefficients: Array, intercepts: Array) -> Value:
    """x times coefficients [columns, features], transposed, plus intercepts (none, one, or one a column)."""
    kind = x.element.dtype
    scores = node.emit(MatMul(), x, constant(node.builder, np.ascontiguousarray(coefficients.T.astype(kind))))
    if intercepts.size == 0:
        return scores
    if intercepts.size not in (1, len(coefficients)):
        raise ModelError("not one intercept a column", expected=len(coefficients), found=intercepts.size)
    return node.emit(Add(), scores, constant(node.builder, intercepts.astype(kind)))


@ml("LinearRegressor")
def import_linear_regressor(node: OnnxNode) -> Value:
    x = as_float(node, rows_of(node))
    coefficients = shaped("coefficients", required_numbers(node, "coefficients"), node.integer("targets", 1), -1)
    scores = linear_scores(node, x, coefficients, numbers(node, "intercepts"))
    transform = transform_named(node.text("post_transform", "NONE"))
    return transformed(node, cast_to(node, scores, ElementType.F32), transform)


@ml("LinearClassifier")
def import_linear_classifier(node: OnnxNode) -> tuple[Value, ...]:
    """Labels and scores; `multi_class` changes nothing. One column of scores speaks for the second of two classes."""
    labels = Labels(node, "classlabels_ints")
    transform = transform_named(node.text("post_transform", "NONE"))
    x = as_float(node, rows_of(node))
    coefficients = shaped("coefficients", required_numbers(node, "coefficients"), -1, x.shape[1])
    scores = linear_scores(node, x, coefficients, numbers(node, "intercepts"))
    if len(coefficients) == 1:
        index = second_class(node, node.emit(Squeeze((1,)), scores), 0.0)
        score = cast_to(node, scores, ElementType.F32)
        if len(labels) == 2:
            return labels.named(index), pair_of_scores(node, score, transform, mixed=False)
        return labels.named(index), transformed(node, score, transform)
    if len(labels) < len(coefficients):
        raise ModelError("fewer labels than classes", expected=len(coefficients), found=len(labels))
    index = largest_class(node, scores)
    return labels.named(index), transformed(node, cast_to(node, scores, ElementType.F32), transform)
