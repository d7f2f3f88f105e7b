"""Gather."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Gather


@imports("Gather")
def import_gather(node: OnnxNode) -> Value:
    return node.emit(Gather(node.integer("axis", 0)), node.operand(0), node.operand(1))
