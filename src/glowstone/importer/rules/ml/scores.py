"""From scores to what models give: post transforms, second classes, labels.

As in ONNX Runtime: of a single column PROBIT alone is a transform, and two classes with one score between them become
two columns by `pair_of_scores`.
"""

from __future__ import annotations

import math

import numpy as np

from glowstone.errors import ModelError, UnsupportedError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.ml.domain import cast_to
from glowstone.importer.text_labels import TEXTS
from glowstone.ops import (
    Abs,
    ArgMax,
    Concat,
    Div,
    Equal,
    Exp,
    Gather,
    Greater,
    Map,
    Mul,
    Neg,
    ReduceMax,
    ReduceSum,
    Sigmoid,
    Softmax,
    Sub,
    Where,
)
from glowstone.ops.constant import constant, scalar
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.types import ElementType

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""In the order of TreeEnsemble's numbers."""
NEGLIGIBLE = 1e-7
"""SOFTMAX_ZERO takes smaller magnitudes for zero."""
ERFINV_FACTOR = 0.147
"""Parameter of Winitzki's approximation of the inverse error function."""
LABEL_AXIS = 1


def transform_named(name: str) -> str:
    """A post transform by its name.

    Raises:
        ModelError: there is none of this name.
    """
    if name not in TRANSFORMS:
        raise ModelError("no post transform of this name", expected=", ".join(TRANSFORMS), found=name)
    return name


def transformed(node: OnnxNode, scores: Value, transform: str) -> Value:
    """The post transform of scores [rows, columns]."""
    if transform == "PROBIT":
        return node.emit(Map(_probit(Input(scores.element, 0)), 1), scores)
    if transform == "NONE" or scores.shape[1] == 1:
        return scores
    if transform == "LOGISTIC":
        return node.emit(Sigmoid(), scores)
    return node.emit(Softmax(-1), scores) if transform == "SOFTMAX" else _softmax_zero(node, scores)


def pair_of_scores(node: OnnxNode, score: Value, transform: str, mixed: bool) -> Value:
    """Scores [rows, 1] of the second of two classes as both columns, transformed.

    `mixed` scores are on both sides of 0: the other class has the negative and not the rest to 1.
    """
    if mixed or transform == "LOGISTIC":
        other = node.emit(Neg(), score)
    else:
        other = node.emit(Sub(), scalar(node.builder, 1, score.element), score)
    both = node.emit(Concat(-1), other, score)
    return transformed(node, both, transform if transform in ("LOGISTIC", "PROBIT") else "NONE")


def _softmax_zero(node: OnnxNode, scores: Value) -> Value:
    """Softmax in which zeros stay zeros; a row of zeros gives 0.5."""

    def number(value: float) -> Value:
        return scalar(node.builder, value, scores.element)

    largest = node.emit(ReduceMax((-1,), True), scores)
    counts = node.emit(Greater(), node.emit(Abs(), scores), number(NEGLIGIBLE))
    powers = node.emit(Exp(), node.emit(Sub(), scores, largest))
    small = node.emit(Mul(), scores, node.emit(Exp(), node.emit(Neg(), largest)))
    terms = node.emit(Where(), counts, powers, small)
    total = node.emit(ReduceSum((-1,), True), node.emit(Where(), counts, powers, number(0)))
    is_empty = node.emit(Equal(), total, number(0))
    return node.emit(Where(), is_empty, number(0.5), node.emit(Div(), terms, total))


def _probit(x: Expression) -> Expression:
    """sqrt(2) * inverse error function of 2 x - 1, approximated as ONNX Runtime and the ONNX reference do."""

    def number(value: float) -> Expression:
        return Literal(x.element, value)

    centred = apply("sub", apply("mul", x, number(2)), number(1))
    logarithm = apply("log", apply("mul", apply("sub", number(1), centred), apply("add", number(1), centred)))
    half = apply("mul", number(0.5), logarithm)
    first = apply("add", number(2 / (math.pi * ERFINV_FACTOR)), half)
    second = apply("mul", number(1 / ERFINV_FACTOR), logarithm)
    root = apply("sqrt", apply("sub", apply("mul", first, first), second))
    magnitude = apply("mul", number(math.sqrt(2)), apply("sqrt", apply("sub", root, first)))
    return apply("select", apply("less", centred, number(0)), apply("neg", magnitude), magnitude)


# Labels


def largest_class(node: OnnxNode, scores: Value) -> Value:
    """The column of the largest score of every row, the first of equal ones, as int64."""
    return node.emit(ArgMax(LABEL_AXIS, False), scores)


def second_class(node: OnnxNode, score: Value, above: float) -> Value:
    """1 where the score of the second class [rows] is above a limit, else 0, as int64."""
    limit = scalar(node.builder, above, score.element)
    return cast_to(node, node.emit(Greater(), score, limit), ElementType.I64)


class Labels:
    """The class labels of a node, which are integers: `text_labels` has numbered those that are texts."""

    def __init__(self, node: OnnxNode, integers_name: str) -> None:
        self.node = node
        self.integers = node.integer_list(integers_name) or ()
        texts = node.text_list(TEXTS) or ()
        if bool(self.integers) == bool(texts):
            raise ModelError(
                "class labels are integers or texts",
                expected=f"{integers_name} or {TEXTS}",
                found="both" if texts else "neither",
            )
        if texts:
            raise UnsupportedError("labels inside a body are texts", expected=integers_name, found=list(texts[:4]))

    def __len__(self) -> int:
        return len(self.integers)

    def named(self, indices: Value) -> Value:
        """The labels of classes [rows] given by number. One label alone stands for two classes: not it, and it."""
        integers = self.integers if len(self) > 1 else (0, 1)
        if integers == tuple(range(len(integers))):
            return indices
        table = constant(self.node.builder, np.array(integers, np.int64))
        return self.node.emit(Gather(0), table, indices)
