"""TensorScatter."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import TensorScatter


@imports("TensorScatter")
def import_tensor_scatter(node: OnnxNode) -> Value:
    mode = node.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise node.refuse("mode", "linear, circular")
    return node.emit(TensorScatter(node.integer("axis", -2), mode == "circular"), *node.operands)
