"""Resize, Upsample."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Value
from glowstone.importer.floats import through_floats
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Resize
from glowstone.ops.constant import constant
from glowstone.ops.resize_tables import CROPPING


@imports("Upsample")
def import_upsample_attribute(node: OnnxNode) -> Value:
    """Upsample-7: scales are an attribute."""
    scales = node.number_list("scales")
    if scales is None:
        raise ModelError("attribute scales is missing")
    return _import_scaled(node, constant(node.builder, np.asarray(scales, np.float32)))


@imports("Upsample", since=9)
def import_upsample(node: OnnxNode) -> Value:
    return _import_scaled(node, node.operand(1))


@imports("Resize")
def import_old_resize(node: OnnxNode) -> Value:
    """Resize-10: no attribute but mode."""
    return _import_scaled(node, node.operand(1))


def _import_scaled(node: OnnxNode, scales: Value) -> Value:
    mode = node.text("mode", "nearest")
    mode = "linear" if mode == "bilinear" else mode
    return _emit(node, Resize(mode, "asymmetric", "legacy"), None, scales, None)


@imports("Resize", since=11)
def import_resize(node: OnnxNode) -> Value:
    mode = node.text("coordinate_transformation_mode", "half_pixel")
    operator = Resize(
        node.text("mode", "nearest"),
        mode,
        node.text("nearest_mode", "round_prefer_floor"),
        node.number("cubic_coeff_a", -0.75),
        node.flag("antialias"),
        node.flag("exclude_outside"),
        node.number("extrapolation_value", 0.0),
        node.text("keep_aspect_ratio_policy", "stretch"),
        node.integer_list("axes"),
    )
    region = node.optional(1) if mode == CROPPING else None
    return _emit(node, operator, region, node.optional(2), node.optional(3))


def _emit(node: OnnxNode, operator: Resize, *lists: Value | None) -> Value:
    x = node.operand(0)
    if operator.mode == "nearest":
        return node.emit(operator, x, *lists)
    return through_floats(node, x, lambda floats: node.emit(operator, floats, *lists))
