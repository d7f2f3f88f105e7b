"""Operators on bits, remainders, and reinterpretation."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.tensors import element_type
from glowstone.ops import BitCast, BitShift, Mod


@imports("BitShift", since=11)
def import_bit_shift(node: OnnxNode) -> Value:
    direction = node.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise node.refuse("direction", "LEFT or RIGHT")
    return node.emit(BitShift(direction == "LEFT"), *node.operands)


@imports("Mod", since=10)
def import_mod(node: OnnxNode) -> Value:
    return node.emit(Mod(node.flag("fmod")), *node.operands)


@imports("BitCast", since=26)
def import_bit_cast(node: OnnxNode) -> Value:
    return node.emit(BitCast(element_type(node.integer("to", 0), "attribute to")), node.operand(0))
