"""GatherElements, GatherND, ScatterElements, Scatter, ScatterND, OneHot."""

from __future__ import annotations

import functools

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import GatherElements, GatherND, OneHot, ScatterElements, ScatterND


@imports("GatherElements")
def import_gather_elements(node: OnnxNode) -> Value:
    return node.emit(GatherElements(node.integer("axis", 0)), *node.operands)


@imports("GatherND")
def import_gather_nd(node: OnnxNode) -> Value:
    return node.emit(GatherND(node.integer("batch_dims", 0)), *node.operands)


def _import_scatter_elements(node: OnnxNode) -> Value:
    return node.emit(ScatterElements(node.integer("axis", 0), node.text("reduction", "none")), *node.operands)


for _name in ("Scatter", "ScatterElements"):
    imports(_name)(functools.partial(_import_scatter_elements))


@imports("ScatterND")
def import_scatter_nd(node: OnnxNode) -> Value:
    return node.emit(ScatterND(node.text("reduction", "none")), *node.operands)


@imports("OneHot")
def import_one_hot(node: OnnxNode) -> Value:
    return node.emit(OneHot(node.integer("axis", -1)), *node.operands)
