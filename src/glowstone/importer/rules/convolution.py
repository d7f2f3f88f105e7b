"""Conv, ConvTranspose, DeformConv, BatchNormalization."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.window_attributes import WindowAttributes, window_attributes
from glowstone.ops import (
    Add,
    BatchNormalization,
    Conv,
    ConvTranspose,
    DeformConv,
    Flatten,
    Mul,
    Reshape,
    Shape,
    Squeeze,
)
from glowstone.ops.composed_normalization import moments
from glowstone.ops.constant import constant, scalar
from glowstone.ops.widening import computed_element, converted


def window_of_weights(node: OnnxNode, w: Value) -> WindowAttributes:
    """The window attributes of a convolution by w [outputs, inputs, kernel].

    Raises:
        ModelError: the attribute kernel_shape is there and differs.
    """
    kernel = node.integer_list("kernel_shape") or w.shape[2:]
    if kernel != w.shape[2:]:
        raise ModelError(
            "attribute kernel_shape differs from the weights", expected=list(w.shape[2:]), found=list(kernel)
        )
    return window_attributes(node, len(kernel))


@imports("Conv")
def import_conv(node: OnnxNode) -> Value:
    window = window_of_weights(node, node.operand(1))
    operator = Conv(window.strides, window.dilations, window.pads, node.integer("group", 1), window.padding)
    return node.emit(operator, *node.operands)


@imports("ConvTranspose")
def import_conv_transpose(node: OnnxNode) -> Value:
    window = window_of_weights(node, node.operand(1))
    operator = ConvTranspose(
        window.strides,
        window.dilations,
        window.pads,
        node.integer("group", 1),
        window.padding,
        node.integer_list("output_padding") or (0,) * len(window.strides),
        node.integer_list("output_shape") or (),
    )
    return node.emit(operator, *node.operands)


@imports("DeformConv", since=19)
def import_deform_conv(node: OnnxNode) -> Value:
    window = window_of_weights(node, node.operand(1))
    operator = DeformConv(
        window.strides, window.dilations, window.pads, node.integer("group", 1), node.integer("offset_group", 1)
    )
    return node.emit(operator, *node.operands)


@imports("BatchNormalization")
def import_batch_normalization_of_results(node: OnnxNode) -> Value | tuple[Value, ...]:
    """BatchNormalization-1 to 9: the number of results says whether it is training."""
    operator = BatchNormalization(node.number("epsilon", 1e-5))
    if node.integer("spatial", 1) != 1:
        return _of_activations(node, operator)
    if node.result_count == 1 or node.flag("is_test"):
        return node.emit(operator, *node.operands)
    return _by_batch_statistics(node, operator)


def _of_activations(node: OnnxNode, operator: BatchNormalization) -> Value:
    """spatial = 0: parameters are of the shape [C, D1, ...], one number for each activation."""
    x, *parameters = (node.operand(index) for index in range(5))
    minus_one = constant(node.builder, np.array([-1], np.int64))
    flat = [node.emit(Reshape(False), parameter, minus_one) for parameter in parameters]
    return node.emit(Reshape(True), node.emit(operator, node.emit(Flatten(1), x), *flat), node.emit(Shape(), x))


@imports("BatchNormalization", since=14)
def import_batch_normalization(node: OnnxNode) -> Value | tuple[Value, ...]:
    operator = BatchNormalization(node.number("epsilon", 1e-5))
    if node.flag("training_mode"):
        return _by_batch_statistics(node, operator)[:3]
    return node.emit(operator, *node.operands)


def _by_batch_statistics(node: OnnxNode, operator: BatchNormalization) -> tuple[Value, ...]:
    """y, the given mean and variance moved by the momentum towards those of x, and these themselves."""
    builder, x = node.builder, node.operand(0)
    axes = (0, *range(2, x.rank))
    mean, _, variance = moments(builder, converted(builder, x, computed_element(x.element)), axes)
    current = [node.emit(Squeeze(axes), statistic) for statistic in (mean, variance)]
    momentum = node.number("momentum", 0.9)
    running = []
    for before, now in zip((node.operand(3), node.operand(4)), current, strict=True):
        kept = node.emit(Mul(), before, scalar(builder, momentum, before.element))
        weight = scalar(builder, 1 - momentum, before.element)
        running.append(node.emit(Add(), kept, node.emit(Mul(), converted(builder, now, before.element), weight)))
    return node.emit(operator, x, node.operand(1), node.operand(2), *current), *running, *current
