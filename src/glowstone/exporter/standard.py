"""Operators of ours as the standard ONNX operators of the same meaning.

In: a node. Out: its standard form, or None where the standard has none: for such operators, for values in blocks of
channels, and for element types that the ONNX operator does not take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from glowstone.exporter.form import OnnxForm
from glowstone.exporter.standard_rules import ONNX_TYPES, RULES, reduction
from glowstone.graph import Node, Value
from glowstone.ops import Reduction


def standard_form(node: Node, opset: int) -> OnnxForm | None:
    """The node in the standard domain at an opset; None where that has no such operator."""
    if any(value.type.channel_block is not None for value in (*node.present_operands(), *node.results)):
        return None
    form = _form(node)
    return form if form is not None and _is_allowed(form, node, opset) else None


def _form(node: Node) -> OnnxForm | None:
    operator = node.operator
    if operator.name in RULES:
        return RULES[operator.name](operator, node)
    if operator.onnx is None:
        return None
    if isinstance(operator, Reduction):
        return reduction(operator, node)
    return None if fields(operator) else OnnxForm(operator.onnx.partition("-")[0])


def _is_allowed(form: OnnxForm, node: Node, opset: int) -> bool:
    """Whether the ONNX operator exists, has these attributes, and so many operands and results of these types."""
    from onnx import defs

    try:
        schema = defs.get_schema(form.kind, opset)
    except defs.SchemaError:
        return False
    count = len(node.operands) + len(form.constants)
    if not schema.min_input <= count <= schema.max_input or len(node.results) > schema.max_output:
        return False
    if not form.attributes.keys() <= schema.attributes.keys():
        return False
    return _are_declared(node.operands, schema.inputs) and _are_declared(node.results, schema.outputs)


def _are_declared(values: Sequence[Value | None], declared: Sequence[Any]) -> bool:
    """Whether a schema's formal parameters have the element types of the values; the last may repeat."""
    from onnx import TensorProto

    for index, value in enumerate(values):
        if value is not None:
            name = TensorProto.DataType.Name(ONNX_TYPES[value.element]).lower()
            if f"tensor({name})" not in declared[min(index, len(declared) - 1)].types:
                return False
    return True
