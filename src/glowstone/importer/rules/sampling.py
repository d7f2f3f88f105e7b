"""GridSample, AffineGrid, Col2Im."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.floats import at_least_f32, through_floats
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import AffineGrid, Col2Im, GridSample
from glowstone.types import ElementType

_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names of modes in GridSample-16."""


@imports("GridSample")
def import_grid_sample(node: OnnxNode) -> Value:
    x, grid = node.operand(0), at_least_f32(node, node.operand(1))
    mode = node.text("mode", "linear")
    operator = GridSample(
        _OLD_MODES.get(mode, mode), node.text("padding_mode", "zeros"), bool(node.integer("align_corners", 0))
    )
    if operator.mode == "nearest" and x.element is not ElementType.BOOL:
        return node.emit(operator, x, grid)
    return through_floats(node, x, lambda floats: node.emit(operator, floats, grid))


@imports("AffineGrid")
def import_affine_grid(node: OnnxNode) -> Value:
    return node.emit(AffineGrid(node.flag("align_corners")), node.operand(0), node.operand(1))


@imports("Col2Im")
def import_col2im(node: OnnxNode) -> Value:
    operator = Col2Im(node.integer_list("strides"), node.integer_list("dilations"), node.integer_list("pads"))
    return node.emit(operator, *node.operands)
