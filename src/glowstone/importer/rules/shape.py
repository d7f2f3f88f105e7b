"""Shape arithmetic and rearrangements."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Concat, Expand, Flatten, Identity, Reshape, Shape, Slice, Squeeze, Transpose, Unsqueeze
from glowstone.ops.constant import constant


@imports("Shape")
def import_shape(node: OnnxNode) -> Value:
    return node.emit(Shape(node.integer("start", 0), node.optional_integer("end")), node.operand(0))


@imports("Reshape")
def import_reshape(node: OnnxNode) -> Value:
    return node.emit(Reshape(node.flag("allowzero")), node.operand(0), node.operand(1))


@imports("Flatten")
def import_flatten(node: OnnxNode) -> Value:
    return node.emit(Flatten(node.integer("axis", 1)), node.operand(0))


@imports("Transpose")
def import_transpose(node: OnnxNode) -> Value:
    x = node.operand(0)
    permutation = node.integer_list("perm")
    if permutation is None:
        permutation = tuple(range(x.rank))[::-1]
    return node.emit(Transpose(permutation), x)


@imports("Squeeze")
def import_squeeze_attribute(node: OnnxNode) -> Value:
    return node.emit(Squeeze(node.integer_list("axes")), node.operand(0))


@imports("Squeeze", since=13)
def import_squeeze(node: OnnxNode) -> Value:
    return node.emit(Squeeze(node.integers(1, "axes")), node.operand(0))


@imports("Unsqueeze")
def import_unsqueeze_attribute(node: OnnxNode) -> Value:
    return _unsqueeze(node, node.integer_list("axes"))


@imports("Unsqueeze", since=13)
def import_unsqueeze(node: OnnxNode) -> Value:
    return _unsqueeze(node, node.integers(1, "axes"))


def _unsqueeze(node: OnnxNode, axes: tuple[int, ...] | None) -> Value:
    if axes is None:
        raise ModelError("axes of Unsqueeze are missing")
    return node.emit(Unsqueeze(axes), node.operand(0))


@imports("Concat")
def import_concat(node: OnnxNode) -> Value:
    axis = node.optional_integer("axis")
    if axis is None:
        raise ModelError("attribute axis is missing")
    if len(node.operands) == 1:
        return node.emit(Identity(), node.operand(0))
    return node.emit(Concat(axis), *node.operands)


@imports("Slice")
def import_slice_attributes(node: OnnxNode) -> Value:
    """Slice-1: starts, ends and axes are attributes."""
    lists = [node.integer_list(name) for name in ("starts", "ends", "axes")]
    operands = [
        constant(node.builder, np.asarray(numbers, np.int64)) if numbers is not None else None for numbers in lists
    ]
    return node.emit(Slice(), node.operand(0), *operands)


@imports("Slice", since=10)
def import_slice(node: OnnxNode) -> Value:
    return node.emit(Slice(), *node.operands)


@imports("Expand")
def import_expand(node: OnnxNode) -> Value:
    return node.emit(Expand(), node.operand(0), node.operand(1))
