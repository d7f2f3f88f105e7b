"""Scaler, Normalizer, Binarizer, Imputer, FeatureVectorizer, ArrayFeatureExtractor."""

from __future__ import annotations

import math

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.ml.domain import Array, as_float, cast_to, ml, numbers, rows_of
from glowstone.ops import (
    Abs,
    Concat,
    Div,
    Equal,
    Gather,
    Greater,
    IsNaN,
    Mul,
    Pad,
    ReduceMax,
    ReduceSum,
    Reshape,
    Slice,
    Sqrt,
    Sub,
    Unsqueeze,
    Where,
)
from glowstone.ops.constant import constant, scalar
from glowstone.types import ElementType

FEATURE_AXIS = 1


def _by_feature(name: str, array: Array, features: int) -> Array:
    """Numbers that are one for all features or one each.

    Raises:
        ModelError: there is another number of them.
    """
    if array.size not in (1, features):
        raise ModelError(f"attribute {name} has another length", expected=f"1 or {features}", found=array.size)
    return array


@ml("Scaler")
def import_scaler(node: OnnxNode) -> Value:
    """(x - offset) * scale, in float64 where x is that; the result is float32."""
    x = as_float(node, node.operand(0))
    for name, operator in (("offset", Sub()), ("scale", Mul())):
        array = numbers(node, name)
        if array.size:
            fitted = _by_feature(name, array, x.shape[-1] if x.rank else 1)
            x = node.emit(operator, x, constant(node.builder, fitted.astype(x.element.dtype)))
    return cast_to(node, x, ElementType.F32)


@ml("Normalizer")
def import_normalizer(node: OnnxNode) -> Value:
    """Rows divided by their norm, which is their largest element (not magnitude) for MAX; zeros stay zeros."""
    given = node.operand(0)
    norm = node.text("norm", "MAX")
    x = as_float(node, rows_of(node))
    if norm == "MAX":
        total = node.emit(ReduceMax((FEATURE_AXIS,), True), x)
    elif norm == "L1":
        total = node.emit(ReduceSum((FEATURE_AXIS,), True), node.emit(Abs(), x))
    elif norm == "L2":
        total = node.emit(Sqrt(), node.emit(ReduceSum((FEATURE_AXIS,), True), node.emit(Mul(), x, x)))
    else:
        raise ModelError("no norm of this name", expected="MAX, L1, L2", found=norm)
    is_zero = node.emit(Equal(), total, scalar(node.builder, 0, x.element))
    divided = node.emit(Div(), x, node.emit(Where(), is_zero, scalar(node.builder, 1, x.element), total))
    result = cast_to(node, divided, ElementType.F32)
    if given.rank == 1:
        return node.emit(Reshape(), result, constant(node.builder, np.array([-1])))
    return result


@ml("Binarizer")
def import_binarizer(node: OnnxNode) -> Value:
    """1 where x is above the threshold, else 0, of x's own element type."""
    x = node.operand(0)
    compared = as_float(node, x)
    above = node.emit(Greater(), compared, scalar(node.builder, node.number("threshold", 0.0), compared.element))
    return cast_to(node, above, x.element)


@ml("Imputer")
def import_imputer(node: OnnxNode) -> Value:
    """Elements that equal the replaced value (or are NaN, where it is that) become the imputed one of their feature."""
    x = node.operand(0)
    kind = x.element.dtype
    if x.element.is_float:
        name, array = "imputed_value_floats", numbers(node, "imputed_value_floats").astype(kind)
        replaced: float | int = float(np.float32(node.number("replaced_value_float", 0.0)))
    else:
        name, array = "imputed_value_int64s", np.array(node.integer_list("imputed_value_int64s") or (), np.int64)
        replaced = node.integer("replaced_value_int64", 0)
    values = _by_feature(name, array, x.shape[-1] if x.rank else 1).astype(kind)
    if isinstance(replaced, float) and math.isnan(replaced):
        missing = node.emit(IsNaN(), x)
    else:
        missing = node.emit(Equal(), x, scalar(node.builder, replaced, x.element))
    return node.emit(Where(), missing, constant(node.builder, values), x)


@ml("FeatureVectorizer")
def import_feature_vectorizer(node: OnnxNode) -> Value:
    """Features of all operands side by side as float32, each cut or filled with zeros to its stated number."""
    stated = node.integer_list("inputdimensions") or ()
    if len(stated) != len(node.operands) or min(stated, default=0) < 0:
        raise ModelError("attribute inputdimensions does not fit", expected=len(node.operands), found=list(stated))
    parts = [_features(node, number, count) for number, count in enumerate(stated)]
    return node.emit(Concat(FEATURE_AXIS), *parts)


def _features(node: OnnxNode, number: int, count: int) -> Value:
    x = cast_to(node, node.operand(number), ElementType.F32)
    if x.rank == 0:
        raise ShapeError("an operand has no features", expected="[rows, features]", found=str(x.type))
    flat = math.prod(x.shape[1:])
    if x.rank == 1:
        x, flat = node.emit(Unsqueeze((0,)), x), x.shape[0]
    elif x.rank > 2:
        x = node.emit(Reshape(), x, constant(node.builder, np.array([0, flat])))
    builder = node.builder
    if flat > count:
        return node.emit(Slice(), x, *(constant(builder, np.array([bound])) for bound in (0, count, FEATURE_AXIS)))
    if flat < count:
        return node.emit(Pad(), x, constant(builder, np.array([0, 0, 0, count - flat])))
    return x


@ml("ArrayFeatureExtractor")
def import_array_feature_extractor(node: OnnxNode) -> Value:
    """Elements along the last axis at the indices, all of them in one axis; of a vector a matrix of one row."""
    x, indices = node.operand(0), node.operand(1)
    if x.rank == 0:
        raise ShapeError("operand X has no features", expected="at least one axis", found=str(x.type))
    if indices.rank != 1:
        indices = node.emit(Reshape(), indices, constant(node.builder, np.array([-1])))
    if x.rank == 1:
        x = node.emit(Unsqueeze((0,)), x)
    return node.emit(Gather(x.rank - 1), x, indices)
