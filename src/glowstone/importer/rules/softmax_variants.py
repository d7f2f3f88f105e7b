"""LogSoftmax, Hardmax."""

from __future__ import annotations

import functools
from collections.abc import Callable

from glowstone.graph import Operator, Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Flatten, Hardmax, LogSoftmax, Reshape, Shape
from glowstone.types import normalize_axis

_KINDS: dict[str, Callable[[int], Operator]] = {"Hardmax": Hardmax, "LogSoftmax": LogSoftmax}


def _import_flattened(kind: Callable[[int], Operator], node: OnnxNode) -> Value:
    """The forms up to opset 12: over all axes from `axis` on, taken as one."""
    x = node.operand(0)
    axis = normalize_axis(node.integer("axis", 1), x.rank)
    if axis == x.rank - 1:
        return node.emit(kind(-1), x)
    flat = node.emit(kind(-1), node.emit(Flatten(axis), x))
    return node.emit(Reshape(True), flat, node.emit(Shape(), x))


def _import_along_axis(kind: Callable[[int], Operator], node: OnnxNode) -> Value:
    return node.emit(kind(node.integer("axis", -1)), node.operand(0))


for _name, _kind in _KINDS.items():
    imports(_name)(functools.partial(_import_flattened, _kind))
    imports(_name, since=13)(functools.partial(_import_along_axis, _kind))
