"""Einsum, Det."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Det, Einsum


@imports("Einsum", since=12)
def import_einsum(node: OnnxNode) -> Value:
    equation = node.text("equation", "")
    if not equation:
        raise ModelError("attribute equation is missing")
    return node.emit(Einsum(equation), *node.operands)


@imports("Det", since=11)
def import_det(node: OnnxNode) -> Value:
    return node.emit(Det(), node.operand(0))
