"""Poolings."""

from __future__ import annotations

from typing import Any

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.window_attributes import window_attributes
from glowstone.ops import (
    AveragePool,
    GlobalAveragePool,
    GlobalLpPool,
    GlobalMaxPool,
    LpPool,
    MaxPool,
    MaxPoolWithIndices,
    MaxUnpool,
)


def _kernel(node: OnnxNode) -> tuple[int, ...]:
    kernel = node.integer_list("kernel_shape")
    if not kernel:
        raise ModelError("attribute kernel_shape is missing")
    return kernel


@imports("MaxPool")
def import_max_pool(node: OnnxNode) -> Value | tuple[Value, ...]:
    if node.result_count == 1:
        return max_pool(node, node.operand(0))
    indexed = MaxPoolWithIndices(**_max_pool_fields(node), column_major=node.flag("storage_order"))
    return node.builder.emit_node(indexed, node.operand(0)).results


def max_pool(node: OnnxNode, x: Value) -> Value:
    """The pooling that the attributes describe, of x."""
    return node.emit(MaxPool(**_max_pool_fields(node)), x)


def _max_pool_fields(node: OnnxNode) -> dict[str, Any]:
    kernel = _kernel(node)
    window = window_attributes(node, len(kernel))
    return {"kernel": kernel, **vars(window), "ceil_mode": node.flag("ceil_mode")}


@imports("AveragePool")
def import_average_pool(node: OnnxNode) -> Value:
    return average_pool(node, node.operand(0))


def average_pool(node: OnnxNode, x: Value) -> Value:
    """The pooling that the attributes describe, of x."""
    kernel = _kernel(node)
    window = window_attributes(node, len(kernel))
    operator = AveragePool(
        kernel,
        window.strides,
        window.dilations,
        window.pads,
        window.padding,
        node.flag("ceil_mode"),
        node.flag("count_include_pad"),
    )
    return node.emit(operator, x)


@imports("GlobalAveragePool")
def import_global_average_pool(node: OnnxNode) -> Value:
    return node.emit(GlobalAveragePool(), node.operand(0))


@imports("GlobalMaxPool")
def import_global_max_pool(node: OnnxNode) -> Value:
    return node.emit(GlobalMaxPool(), node.operand(0))


@imports("LpPool")
def import_lp_pool(node: OnnxNode) -> Value:
    kernel = _kernel(node)
    window = window_attributes(node, len(kernel))
    ceil_mode = node.flag("ceil_mode")
    operator = LpPool(
        kernel, window.strides, window.dilations, window.pads, window.padding, ceil_mode, node.integer("p", 2)
    )
    return node.emit(operator, node.operand(0))


@imports("GlobalLpPool")
def import_global_lp_pool(node: OnnxNode) -> Value:
    return node.emit(GlobalLpPool(node.integer("p", 2)), node.operand(0))


@imports("MaxUnpool", since=9)
def import_max_unpool(node: OnnxNode) -> Value:
    kernel = _kernel(node)
    window = window_attributes(node, len(kernel))
    return node.emit(MaxUnpool(kernel, window.strides, window.pads), *node.operands)
