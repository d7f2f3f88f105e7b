"""Softmax, LayerNormalization."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Flatten, LayerNormalization, Reshape, Shape, Softmax
from glowstone.types import normalize_axis


@imports("Softmax")
def import_flattened_softmax(node: OnnxNode) -> Value:
    """Softmax-1 to 11: over all axes from `axis` on, taken as one."""
    x = node.operand(0)
    axis = normalize_axis(node.integer("axis", 1), x.rank) if x.rank else 0
    if axis == x.rank - 1:
        return node.emit(Softmax(-1), x)
    flat = node.emit(Softmax(-1), node.emit(Flatten(axis), x))
    return node.emit(Reshape(True), flat, node.emit(Shape(), x))


@imports("Softmax", since=13)
def import_softmax(node: OnnxNode) -> Value:
    return node.emit(Softmax(node.integer("axis", -1)), node.operand(0))


@imports("LayerNormalization", since=17)
def import_layer_normalization(node: OnnxNode) -> Value:
    if node.integer("stash_type", 1) != 1:
        raise node.refuse("stash_type", 1)
    return node.emit(LayerNormalization(node.integer("axis", -1), node.number("epsilon", 1e-5)), *node.operands)
