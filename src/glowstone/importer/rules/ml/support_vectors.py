"""SVMClassifier and SVMRegressor: kernels in float64, so that the distance of two vectors may be had from products."""

from __future__ import annotations

import itertools

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
from glowstone.importer.rules.ml.linear import linear_scores
from glowstone.importer.rules.ml.scores import (
    Labels,
    largest_class,
    pair_of_scores,
    transform_named,
    transformed,
)
from glowstone.ops import (
    Add,
    Clip,
    Exp,
    Greater,
    MatMul,
    Mul,
    Neg,
    PairwiseCoupling,
    Pow,
    ReduceMax,
    ReduceSum,
    Relu,
    Sigmoid,
    Sub,
    Tanh,
    Where,
)
from glowstone.ops.constant import constant, scalar
from glowstone.types import ElementType

LEAST_PROBABILITY = 1e-7
"""Of a pair of classes, before probabilities are coupled."""
PROBABLE = 0.5


def _number(node: OnnxNode, value: float) -> Value:
    return scalar(node.builder, value, ElementType.F64)


def kernel_values(node: OnnxNode, x: Value, vectors: Array, kernel: str) -> Value:
    """[rows, vectors] in float64: the kernel of every row with every vector [vectors, features]."""
    gamma, offset, degree = _kernel_parameters(node, kernel)
    products = linear_scores(node, x, vectors, np.zeros(0))
    if kernel == "LINEAR":
        return products
    if kernel == "RBF":
        squares = node.emit(ReduceSum((1,), True), node.emit(Mul(), x, x))
        own = constant(node.builder, np.square(vectors.astype(np.float64)).sum(axis=1))
        twice = node.emit(Mul(), products, _number(node, 2))
        distances = node.emit(Relu(), node.emit(Sub(), node.emit(Add(), squares, own), twice))
        return node.emit(Exp(), node.emit(Mul(), distances, _number(node, -gamma)))
    moved = node.emit(Add(), node.emit(Mul(), products, _number(node, gamma)), _number(node, offset))
    return node.emit(Tanh(), moved) if kernel == "SIGMOID" else node.emit(Pow(), moved, _number(node, degree))


def _kernel_parameters(node: OnnxNode, kernel: str) -> tuple[float, float, float]:
    """gamma, coef0 and degree.

    Raises:
        ModelError: an unknown kernel, or not three parameters where it has any.
    """
    if kernel not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        raise ModelError("no kernel of this name", expected="LINEAR, POLY, RBF, SIGMOID", found=kernel)
    held = numbers(node, "kernel_params")
    if held.size == 0:
        held = np.zeros(3, np.float32)
    gamma, offset, degree = shaped("kernel_params", held, 3).astype(np.float64).tolist()
    return gamma, offset, degree


@ml("SVMRegressor")
def import_svm_regressor(node: OnnxNode) -> Value:
    """One number a row; with `one_class` 1 or -1. As in ONNX Runtime no post transform is applied."""
    transform_named(node.text("post_transform", "NONE"))
    x = as_float(node, rows_of(node), ElementType.F64)
    coefficients = required_numbers(node, "coefficients")
    rho = required_numbers(node, "rho")[:1]
    count = node.integer("n_supports", 0)
    if count > 0:
        vectors = shaped("support_vectors", required_numbers(node, "support_vectors"), count, -1)
        features = kernel_values(node, x, vectors, node.text("kernel_type", "LINEAR"))
        scores = linear_scores(node, features, shaped("coefficients", coefficients, 1, count), rho)
    else:
        scores = linear_scores(node, x, shaped("coefficients", coefficients, 1, -1), rho)
    if node.flag("one_class"):
        is_inside = node.emit(Greater(), scores, _number(node, 0))
        scores = node.emit(Where(), is_inside, _number(node, 1), _number(node, -1))
    return cast_to(node, scores, ElementType.F32)


@ml("SVMClassifier")
def import_svm_classifier(node: OnnxNode) -> tuple[Value, ...]:
    """Labels and scores: of classes where there are probabilities or no support vectors, else of pairs of classes."""
    labels = Labels(node, "classlabels_ints")
    transform = transform_named(node.text("post_transform", "NONE"))
    x = as_float(node, rows_of(node), ElementType.F64)
    if sum(node.integer_list("vectors_per_class") or ()) <= 0:
        return _linear_classes(node, x, labels, transform)
    scores = _pair_scores(node, x, len(labels))
    index = largest_class(node, _votes(node, scores, len(labels)))
    if numbers(node, "prob_a").size:
        probabilities = cast_to(node, _probabilities(node, scores, len(labels)), ElementType.F32)
        return labels.named(index), transformed(node, probabilities, transform)
    narrow = cast_to(node, scores, ElementType.F32)
    if len(labels) == 2:
        return labels.named(index), pair_of_scores(node, narrow, transform, mixed=transform == "NONE")
    return labels.named(index), transformed(node, narrow, transform)


def _linear_classes(node: OnnxNode, x: Value, labels: Labels, transform: str) -> tuple[Value, ...]:
    """One vector of coefficients a class; the label is of the largest score, of two classes by its sign."""
    coefficients = shaped("coefficients", required_numbers(node, "coefficients"), len(labels), -1)
    scores = linear_scores(node, x, coefficients, required_numbers(node, "rho")[:1])
    index = largest_class(node, scores)
    if len(labels) == 2:
        largest = node.emit(ReduceMax((1,), False), scores)
        limit = PROBABLE if bool((coefficients >= 0).all()) else 0.0
        is_second = node.emit(Greater(), largest, _number(node, limit))
        index = node.emit(Where(), is_second, scalar(node.builder, 1, ElementType.I64), index)
    return labels.named(index), transformed(node, cast_to(node, scores, ElementType.F32), transform)


def _pair_scores(node: OnnxNode, x: Value, classes: int) -> Value:
    """[rows, pairs] in float64. Row j - 1 of the coefficients has those of class i's vectors against class j > i."""
    counts = node.integer_list("vectors_per_class") or ()
    if len(counts) != classes or min(counts) < 0:
        raise ModelError("attribute vectors_per_class does not fit", expected=f"{classes} counts", found=list(counts))
    total = sum(counts)
    vectors = shaped("support_vectors", required_numbers(node, "support_vectors"), total, -1)
    held = shaped("coefficients", required_numbers(node, "coefficients"), classes - 1, total)
    ends = np.cumsum(counts)
    pairs = list(itertools.combinations(range(classes), 2))
    columns = np.zeros((len(pairs), total))
    for column, (first, second) in zip(columns, pairs, strict=True):
        for own, other in ((first, second - 1), (second, first)):
            part = slice(ends[own] - counts[own], ends[own])
            column[part] = held[other, part]
    features = kernel_values(node, x, vectors, node.text("kernel_type", "LINEAR"))
    rho = required_numbers(node, "rho")
    return linear_scores(node, features, columns, shaped("rho", rho, len(pairs)))


def _votes(node: OnnxNode, scores: Value, classes: int) -> Value:
    """[rows, classes]: of how many pairs each class is the better one."""
    pairs = np.array(list(itertools.combinations(range(classes), 2)))
    difference = np.eye(classes)[pairs[:, 0]] - np.eye(classes)[pairs[:, 1]]
    first = cast_to(node, node.emit(Greater(), scores, _number(node, 0)), ElementType.F64)
    gains = node.emit(MatMul(), first, constant(node.builder, difference))
    return node.emit(Add(), gains, constant(node.builder, np.eye(classes)[pairs[:, 1]].sum(axis=0)))


def _probabilities(node: OnnxNode, scores: Value, classes: int) -> Value:
    """Platt's sigmoid of every pair, coupled: [rows, classes] in float64."""
    slope = shaped("prob_a", numbers(node, "prob_a"), scores.shape[1]).astype(np.float64)
    offset = shaped("prob_b", required_numbers(node, "prob_b"), scores.shape[1]).astype(np.float64)
    moved = node.emit(Add(), node.emit(Mul(), scores, constant(node.builder, slope)), constant(node.builder, offset))
    pairs = node.emit(Sigmoid(), node.emit(Neg(), moved))
    bounds = _number(node, LEAST_PROBABILITY), _number(node, 1 - LEAST_PROBABILITY)
    return node.emit(PairwiseCoupling(classes), node.emit(Clip(), pairs, *bounds))
