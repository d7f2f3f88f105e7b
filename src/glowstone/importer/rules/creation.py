"""Tensors made from a few numbers."""

from __future__ import annotations

import functools

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.tensors import element_type
from glowstone.ops import BlackmanWindow, EyeLike, HammingWindow, HannWindow, Range, ReduceProd, Shape, Trilu
from glowstone.ops.creation import Window

_FLOAT = 1


@imports("Range", since=11)
def import_range(node: OnnxNode) -> Value:
    return node.emit(Range(), *node.operands)


@imports("Size")
def import_size(node: OnnxNode) -> Value:
    return node.emit(ReduceProd(None, False), node.emit(Shape(), node.operand(0)))


@imports("EyeLike", since=9)
def import_eye_like(node: OnnxNode) -> Value:
    x = node.operand(0)
    number = node.optional_integer("dtype")
    element = x.element if number is None else element_type(number, "attribute dtype")
    return node.emit(EyeLike(element, node.integer("k", 0)), x)


@imports("Trilu", since=14)
def import_trilu(node: OnnxNode) -> Value:
    return node.emit(Trilu(bool(node.integer("upper", 1))), *node.operands)


def _import_window(kind: type[Window], node: OnnxNode) -> Value:
    element = element_type(node.integer("output_datatype", _FLOAT), "attribute output_datatype")
    return node.emit(kind(element, bool(node.integer("periodic", 1))), node.operand(0))


for _name, _kind in {
    "BlackmanWindow": BlackmanWindow,
    "HammingWindow": HammingWindow,
    "HannWindow": HannWindow,
}.items():
    imports(_name, since=17)(functools.partial(_import_window, _kind))
