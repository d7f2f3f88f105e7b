"""ArgMax, ArgMin, TopK, CumSum, CumProd."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import ArgMax, ArgMin, CumProd, CumSum, TopK
from glowstone.ops.constant import constant

Maker = Callable[..., Any]


def _import_arg(kind: Maker, node: OnnxNode) -> Value:
    keep = bool(node.integer("keepdims", 1))
    return node.emit(kind(node.integer("axis", 0), keep, node.flag("select_last_index")), node.operand(0))


for _name, _position in {"ArgMax": ArgMax, "ArgMin": ArgMin}.items():
    imports(_name)(functools.partial(_import_arg, _position))


@imports("TopK")
def import_top_k_attribute(node: OnnxNode) -> tuple[Value, ...]:
    """TopK-1: k is an attribute."""
    count = node.optional_integer("k")
    if count is None:
        raise ModelError("attribute k is missing", expected="an integer")
    return _top_k(node, constant(node.builder, np.array([count], np.int64)))


@imports("TopK", since=10)
def import_top_k(node: OnnxNode) -> tuple[Value, ...]:
    """Results come sorted, asked or not."""
    return _top_k(node, node.operand(1))


def _top_k(node: OnnxNode, count: Value) -> tuple[Value, ...]:
    operator = TopK(node.integer("axis", -1), bool(node.integer("largest", 1)))
    return node.builder.emit_node(operator, node.operand(0), count).results


def _import_cumulative(kind: Maker, node: OnnxNode) -> Value:
    axis = node.integers(1, "axis")
    if axis is None or len(axis) != 1:
        raise ModelError("operand axis is not one integer", expected="one integer", found=axis)
    return node.emit(kind(axis[0], node.flag("exclusive"), node.flag("reverse")), node.operand(0))


for _name, _running in {"CumSum": CumSum, "CumProd": CumProd}.items():
    imports(_name)(functools.partial(_import_cumulative, _running))
