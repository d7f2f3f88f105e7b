"""RoiAlign, MaxRoiPool."""

from __future__ import annotations

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import MaxRoiPool, RoiAlign

_POOLINGS = {"avg": "average", "max": "max"}
_SHIFTS = {"half_pixel": True, "output_half_pixel": False}


@imports("RoiAlign")
def import_old_roi_align(node: OnnxNode) -> Value:
    """RoiAlign-10: pixels have no half."""
    return _roi_align(node, "output_half_pixel")


@imports("RoiAlign", since=16)
def import_roi_align(node: OnnxNode) -> Value:
    return _roi_align(node, node.text("coordinate_transformation_mode", "half_pixel"))


def _roi_align(node: OnnxNode, mode: str) -> Value:
    if mode not in _SHIFTS:
        raise node.refuse("coordinate_transformation_mode", ", ".join(_SHIFTS))
    pooling = node.text("mode", "avg")
    if pooling not in _POOLINGS:
        raise node.refuse("mode", ", ".join(_POOLINGS))
    operator = RoiAlign(
        _POOLINGS[pooling],
        _SHIFTS[mode],
        (node.integer("output_height", 1), node.integer("output_width", 1)),
        node.integer("sampling_ratio", 0),
        node.number("spatial_scale", 1.0),
    )
    return node.emit(operator, *node.operands)


@imports("MaxRoiPool")
def import_max_roi_pool(node: OnnxNode) -> Value:
    cells = node.integer_list("pooled_shape")
    if cells is None or len(cells) != 2:
        raise ModelError("attribute pooled_shape is two numbers", expected="two numbers", found=cells)
    return node.emit(MaxRoiPool((cells[0], cells[1]), node.number("spatial_scale", 1.0)), *node.operands)
