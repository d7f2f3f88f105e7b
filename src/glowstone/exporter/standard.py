"""Operators of ours as the standard ONNX operators of the same meaning.

In: a node. Out: its standard form, or None where the standard has none: for such operators, for values in blocks of
channels, and for element types that the ONNX operator does not take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import numpy as np

from glowstone import ops
from glowstone.exporter.form import OnnxForm
from glowstone.graph import Node, Operator
from glowstone.importer.tensors import ELEMENT_TYPES

Rule = Callable[[Any, Node], "OnnxForm | None"]

ONNX_TYPES: Final = {element: number for number, element in ELEMENT_TYPES.items()}
"""Number of every element type in onnx.TensorProto.DataType."""

_AUTO_PAD: Final = {"same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def standard_form(node: Node, opset: int) -> OnnxForm | None:
    """The node in the standard domain at an opset; None where that has no such operator."""
    operator = node.operator
    if any(value.type.channel_block is not None for value in (*node.present_operands(), *node.results)):
        return None
    form = _form(operator, node)
    return form if form is not None and _is_allowed(form, node, opset) else None


def _form(operator: Operator, node: Node) -> OnnxForm | None:
    rule = _RULES.get(type(operator))
    if rule is not None:
        return rule(operator, node)
    if isinstance(operator, ops.Reduction):
        return _reduction(operator, node)
    if operator.onnx is None or fields(operator):
        return None
    return OnnxForm(operator.onnx.partition("-")[0])


def _is_allowed(form: OnnxForm, node: Node, opset: int) -> bool:
    """Whether the ONNX operator exists and takes so many operands of these element types."""
    from onnx import TensorProto, defs

    try:
        schema = defs.get_schema(form.kind, opset)
    except defs.SchemaError:
        return False
    count = len(node.operands) + len(form.constants)
    if not schema.min_input <= count <= schema.max_input or len(node.results) > schema.max_output:
        return False
    for index, operand in enumerate(node.operands):
        declared = schema.inputs[min(index, len(schema.inputs) - 1)]
        if operand is not None:
            name = TensorProto.DataType.Name(ONNX_TYPES[operand.element]).lower()
            if f"tensor({name})" not in declared.types:
                return False
    return True


def _window(operator: Any, rank: int) -> dict[str, Any]:
    """The attributes that convolution and pooling share, for a window over `rank` axes."""
    attributes: dict[str, Any] = {"strides": operator.strides, "dilations": operator.dilations}
    if operator.padding in _AUTO_PAD:
        attributes["auto_pad"] = _AUTO_PAD[operator.padding]
    else:
        attributes["pads"] = operator.pads
    return attributes


def _convolution(operator: ops.Conv, node: Node) -> OnnxForm:
    w = node.operands[1]
    assert w is not None
    attributes = {"kernel_shape": w.shape[2:], "group": operator.groups, **_window(operator, w.rank - 2)}
    return OnnxForm("Conv", attributes)


def _pooling(operator: Any, node: Node) -> OnnxForm:
    attributes = {"kernel_shape": operator.kernel, "ceil_mode": int(operator.ceil_mode)}
    attributes |= _window(operator, len(operator.kernel))
    if isinstance(operator, ops.AveragePool):
        attributes["count_include_pad"] = int(operator.count_include_pad)
    return OnnxForm(operator.name, attributes)


def _reduction(operator: Any, node: Node) -> OnnxForm | None:
    if operator.onnx is None or operator.axes == ():
        return None
    constants = () if operator.axes is None else (np.array(operator.axes, np.int64),)
    return OnnxForm(operator.onnx.partition("-")[0], {"keepdims": int(operator.keep)}, constants)


def _with_axes(operator: ops.Squeeze | ops.Unsqueeze, node: Node) -> OnnxForm:
    constants = () if operator.axes is None else (np.array(operator.axes, np.int64),)
    return OnnxForm(operator.name, {}, constants)


def _shape(operator: ops.Shape, node: Node) -> OnnxForm:
    end = {} if operator.end is None else {"end": operator.end}
    return OnnxForm("Shape", {"start": operator.start, **end})


def _constant_of_shape(operator: ops.ConstantOfShape, node: Node) -> OnnxForm:
    return OnnxForm("ConstantOfShape", {"value": np.array([operator.value], operator.element.dtype)})


def _gemm(operator: ops.Gemm, node: Node) -> OnnxForm:
    flags = {"transA": int(operator.transpose_a), "transB": int(operator.transpose_b)}
    return OnnxForm("Gemm", {"alpha": operator.alpha, "beta": operator.beta, **flags})


def _same_names(*names: str) -> Rule:
    """A rule for operators whose fields are the attributes of the same name."""

    def rule(operator: Operator, node: Node) -> OnnxForm:
        assert operator.onnx is not None
        return OnnxForm(operator.onnx.partition("-")[0], {name: getattr(operator, name) for name in names})

    return rule


_RULES: Final[dict[type[Operator], Rule]] = {
    ops.AveragePool: _pooling,
    ops.BatchNormalization: _same_names("epsilon"),
    ops.Cast: lambda operator, node: OnnxForm("Cast", {"to": ONNX_TYPES[operator.to]}),
    ops.Concat: _same_names("axis"),
    ops.ConstantOfShape: _constant_of_shape,
    ops.Conv: _convolution,
    ops.Flatten: _same_names("axis"),
    ops.Gather: _same_names("axis"),
    ops.Gemm: _gemm,
    ops.HardSigmoid: _same_names("alpha", "beta"),
    ops.LayerNormalization: _same_names("axis", "epsilon"),
    ops.LeakyRelu: _same_names("alpha"),
    ops.MaxPool: _pooling,
    ops.Reshape: lambda operator, node: OnnxForm("Reshape", {"allowzero": int(operator.allow_zero)}),
    ops.Shape: _shape,
    ops.Softmax: _same_names("axis"),
    ops.Squeeze: _with_axes,
    ops.Transpose: lambda operator, node: OnnxForm("Transpose", {"perm": operator.permutation}),
    ops.Unsqueeze: _with_axes,
}
"""Operators with fields. One without fields goes by its `onnx` name; one that is not here by the own domain."""
