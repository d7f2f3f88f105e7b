"""Operators without a standard form, in the domain of this package.

The operator's name and fields stand as they are in the text form of graphs. Numbers, texts and lists of them are
attributes of the ONNX kinds, bodies are graphs; anything else (an expression, the anchor of a fused node) is its text.
"""

from __future__ import annotations

from typing import Any

from glowstone.exporter.form import OnnxForm
from glowstone.graph import Graph, Node, Operator, Tensor
from glowstone.graph.printer import print_operator
from glowstone.text import print_value


def own_form(node: Node) -> OnnxForm:
    """The node as an operator of the own domain. Fields that are None are left out.

    `channel_block` says which results are in blocks of channels, and of how many: their shapes are the logical ones.
    """
    attributes = {
        name: _attribute(value)
        for name, value in node.operator.attributes().items()
        if value is not None and value != ()
    }
    blocks = [value.type.channel_block or 0 for value in node.results]
    if any(blocks):
        attributes["channel_block"] = blocks
    return OnnxForm(node.operator.name, attributes)


def _attribute(value: object) -> Any:
    """A value that an ONNX attribute can hold."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float | str | Graph):
        return value
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, tuple) and all(isinstance(item, int | float) for item in value):
        return list(map(float, value)) if any(isinstance(item, float) for item in value) else list(map(int, value))
    return print_value(value, {Operator: print_operator})
