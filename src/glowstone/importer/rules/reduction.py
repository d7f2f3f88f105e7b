"""Reductions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import (
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)

Maker = Callable[[Any, bool], Any]


def _import_with_attribute(kind: Maker, node: OnnxNode) -> Value:
    return node.emit(kind(node.integer_list("axes") or None, bool(node.integer("keepdims", 1))), node.operand(0))


def _import_with_operand(kind: Maker, node: OnnxNode) -> Value:
    axes = node.integers(1, "axes")
    if not axes:
        axes = () if node.flag("noop_with_empty_axes") else None
    return node.emit(kind(axes, bool(node.integer("keepdims", 1))), node.operand(0))


_AXES_OPERAND_SINCE: dict[str, tuple[Maker, int]] = {
    "ReduceSum": (ReduceSum, 13),
    "ReduceMean": (ReduceMean, 18),
    "ReduceMax": (ReduceMax, 18),
    "ReduceMin": (ReduceMin, 18),
    "ReduceProd": (ReduceProd, 18),
    "ReduceL1": (ReduceL1, 18),
    "ReduceL2": (ReduceL2, 18),
    "ReduceLogSum": (ReduceLogSum, 18),
    "ReduceLogSumExp": (ReduceLogSumExp, 18),
    "ReduceSumSquare": (ReduceSumSquare, 18),
}

for _name, (_kind, _since) in _AXES_OPERAND_SINCE.items():
    imports(_name)(functools.partial(_import_with_attribute, _kind))
    imports(_name, since=_since)(functools.partial(_import_with_operand, _kind))
