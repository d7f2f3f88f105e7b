"""LabelEncoder and OneHotEncoder of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.ml.domain import Array, cast_to, ml, numbers
from glowstone.ops import Equal, Gather, Lookup, Unsqueeze
from glowstone.ops.constant import constant
from glowstone.types import ElementType

DEFAULT_INTEGER = -1


def unique_keys(keys: Array, values: Array) -> tuple[Array, Array]:
    """Keys that rise and their values; of equal keys the first counts."""
    distinct, first = np.unique(keys, return_index=True)
    return distinct, values[first]


@ml("LabelEncoder", since=2)
def import_label_encoder_without_nan(node: OnnxNode) -> Value:
    """Up to version 3 NaN equals no key."""
    return _encoded(node, nan_is_key=False)


@ml("LabelEncoder", since=4)
def import_label_encoder(node: OnnxNode) -> Value:
    """NaN is a key as any."""
    return _encoded(node, nan_is_key=True)


def _encoded(node: OnnxNode, nan_is_key: bool) -> Value:
    """The value of the key that x equals, the default where there is none."""
    x = node.operand(0)
    keys, (values, default) = _listed(node, "keys"), _values(node)
    if len(keys) != len(values):
        raise ModelError("keys and values differ in number", expected=len(keys), found=len(values))
    if ElementType.from_dtype(keys.dtype) is not x.element:
        raise ModelError("keys have another element type than x", expected=x.element, found=keys.dtype)
    if keys.dtype.kind == "f" and not nan_is_key:
        keys, values = keys[~np.isnan(keys)], values[~np.isnan(keys)]
    sorted_keys, sorted_values = unique_keys(keys, values)
    table = np.concatenate([sorted_values, np.array([default], values.dtype)])
    return node.emit(Lookup(), x, constant(node.builder, sorted_keys), constant(node.builder, table))


def _listed(node: OnnxNode, name: str) -> Array:
    """The numbers of the one attribute among those of this name that is given.

    Raises:
        ModelError: none is.
    """
    tensor = node.tensor(f"{name}_tensor")
    if tensor is not None:
        return tensor.array.ravel()
    integers = node.integer_list(f"{name}_int64s")
    if integers:
        return np.array(integers, np.int64)
    floats = numbers(node, f"{name}_floats")
    if floats.size == 0:
        raise ModelError(f"an encoder without {name}", expected=f"{name}_int64s, {name}_floats or {name}_tensor")
    return floats


def _values(node: OnnxNode) -> tuple[Array, Any]:
    """The values and the default."""
    values = _listed(node, "values")
    default = node.tensor("default_tensor")
    if default is not None and default.array.size == 1:
        return values, default.array.reshape(())[()]
    if values.dtype.kind == "f":
        return values, node.number("default_float", -0.0)
    return values, node.integer("default_int64", DEFAULT_INTEGER)


@ml("OneHotEncoder")
def import_one_hot_encoder(node: OnnxNode) -> Value:
    """A last axis with 1 at the category that x, truncated to an integer, is. Without `zeros` it must be one."""
    categories = np.array(node.integer_list("cats_int64s") or (), np.int64)
    if categories.size == 0:
        raise ModelError("an encoder without categories", expected="cats_int64s or cats_strings")
    x = cast_to(node, node.operand(0), ElementType.I64)
    return one_hot(node, x, categories)


def one_hot(node: OnnxNode, x: Value, categories: Array) -> Value:
    """[..., categories] of int64 x."""
    count = categories.size
    keys, places = unique_keys(categories, np.arange(count))
    table = np.concatenate([places, [count]])
    place = node.emit(Lookup(), x, constant(node.builder, keys), constant(node.builder, table))
    if not node.integer("zeros", 1):  # the gather reports a place that there is not
        place = node.emit(Gather(0), constant(node.builder, np.arange(count)), place)
    spread = node.emit(Unsqueeze((x.rank,)), place)
    equal = node.emit(Equal(), spread, constant(node.builder, np.arange(count)))
    return cast_to(node, equal, ElementType.F32)
