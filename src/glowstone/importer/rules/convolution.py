"""Conv, ConvTranspose, DeformConv, BatchNormalization."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.window_attributes import WindowAttributes, window_attributes
from glowstone.ops import Add, BatchNormalization, Conv, ConvTranspose, DeformConv, Mul, Squeeze
from glowstone.ops.composed_normalization import moments
from glowstone.ops.constant import scalar
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
def import_batch_normalization(node: OnnxNode) -> Value | tuple[Value, ...]:
    if node.integer("spatial", 1) != 1:
        raise node.refuse("spatial", 1)
    operator = BatchNormalization(node.number("epsilon", 1e-5))
    if node.flag("training_mode"):
        return _by_batch_statistics(node, operator)
    return node.emit(operator, *node.operands)


def _by_batch_statistics(node: OnnxNode, operator: BatchNormalization) -> tuple[Value, ...]:
    """Mean and variance are those of x; further results are the given ones, moved towards these by the momentum."""
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
    return node.emit(operator, x, node.operand(1), node.operand(2), *current), *running
