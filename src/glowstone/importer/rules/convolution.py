"""Conv, ConvTranspose, DeformConv, BatchNormalization."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.window_attributes import WindowAttributes, window_attributes
from glowstone.ops import BatchNormalization, Conv, ConvTranspose, DeformConv


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
def import_batch_normalization(node: OnnxNode) -> Value:
    if node.flag("training_mode"):
        raise node.refuse("training_mode", 0)
    if node.integer("spatial", 1) != 1:
        raise node.refuse("spatial", 1)
    return node.emit(BatchNormalization(node.number("epsilon", 1e-5)), *node.operands)
