"""Split, Pad, Tile, DepthToSpace, SpaceToDepth, CenterCropPad."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import CenterCropPad, DepthToSpace, Pad, SpaceToDepth, Split, Tile
from glowstone.ops.constant import constant, scalar


@imports("Split")
def import_split_attribute(node: OnnxNode) -> tuple[Value, ...]:
    """Split-1 to 11: sizes are an attribute."""
    sizes = node.integer_list("split")
    return _split(node, None if sizes is None else constant(node.builder, np.asarray(sizes, np.int64)))


@imports("Split", since=13)
def import_split(node: OnnxNode) -> tuple[Value, ...]:
    return _split(node, node.optional(1))


def _split(node: OnnxNode, sizes: Value | None) -> tuple[Value, ...]:
    count = node.integer("num_outputs", node.result_count)
    if count != node.result_count:
        raise ModelError("attribute num_outputs is not the number of results", expected=node.result_count, found=count)
    return node.builder.emit_node(Split(node.integer("axis", 0), count), node.operand(0), sizes).results


@imports("Pad")
def import_pad_attributes(node: OnnxNode) -> Value:
    """Pad-2: pads and value are attributes."""
    x = node.operand(0)
    pads = node.integer_list("pads")
    if pads is None:
        raise ModelError("attribute pads is missing")
    value = scalar(node.builder, node.number("value", 0.0), x.element)
    return node.emit(Pad(node.text("mode", "constant")), x, constant(node.builder, np.asarray(pads, np.int64)), value)


@imports("Pad", since=11)
def import_pad(node: OnnxNode) -> Value:
    return node.emit(Pad(node.text("mode", "constant")), *node.operands)


@imports("Tile")
def import_tile(node: OnnxNode) -> Value:
    return node.emit(Tile(), node.operand(0), node.operand(1))


@imports("DepthToSpace")
def import_depth_to_space(node: OnnxNode) -> Value:
    return node.emit(DepthToSpace(_block(node), _is_column_first(node)), node.operand(0))


@imports("SpaceToDepth")
def import_space_to_depth(node: OnnxNode) -> Value:
    return node.emit(SpaceToDepth(_block(node), _is_column_first(node)), node.operand(0))


def _is_column_first(node: OnnxNode) -> bool:
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise ModelError("attribute mode is unknown", expected="DCR, CRD", found=mode)
    return mode == "CRD"


def _block(node: OnnxNode) -> int:
    block = node.optional_integer("blocksize")
    if block is None:
        raise ModelError("attribute blocksize is missing")
    return block


@imports("CenterCropPad")
def import_center_crop_pad(node: OnnxNode) -> Value:
    return node.emit(CenterCropPad(node.integer_list("axes")), node.operand(0), node.operand(1))
