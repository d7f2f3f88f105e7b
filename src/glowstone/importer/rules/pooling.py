"""MaxPool, AveragePool, GlobalAveragePool."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.window_attributes import window_attributes
from glowstone.ops import AveragePool, GlobalAveragePool, MaxPool


def _kernel(node: OnnxNode) -> tuple[int, ...]:
    kernel = node.integer_list("kernel_shape")
    if not kernel:
        raise ModelError("attribute kernel_shape is missing")
    return kernel


@imports("MaxPool")
def import_max_pool(node: OnnxNode) -> Value:
    kernel = _kernel(node)
    window = window_attributes(node, len(kernel))
    operator = MaxPool(kernel, window.strides, window.dilations, window.pads, window.padding, node.flag("ceil_mode"))
    return node.emit(operator, node.operand(0))


@imports("AveragePool")
def import_average_pool(node: OnnxNode) -> Value:
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
    return node.emit(operator, node.operand(0))


@imports("GlobalAveragePool")
def import_global_average_pool(node: OnnxNode) -> Value:
    return node.emit(GlobalAveragePool(), node.operand(0))
