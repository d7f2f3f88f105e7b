"""How operators with fields become standard ONNX operators: attributes, and constants behind the operands.

One line for each operator, by its name. A rule gives None for fields that the standard cannot say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from glowstone.exporter.form import OnnxForm
from glowstone.graph import Node
from glowstone.importer.tensors import ELEMENT_TYPES
from glowstone.ops import Cast

Rule = Callable[[Any, Node], "OnnxForm | None"]

ONNX_TYPES: Final = {element: number for number, element in ELEMENT_TYPES.items()}
"""Number of every element type in onnx.TensorProto.DataType."""

_AUTO_PAD: Final = {"same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def named(*same: str, kind: str | None = None, **renamed: str) -> Rule:
    """A rule for operators whose fields are attributes: of the same name, or `field=attribute`.

    `kind` is the ONNX operator where its name is another one.
    """
    attributes = {**dict.fromkeys(same), **renamed}

    def rule(operator: Any, node: Node) -> OnnxForm:
        found = {name or field: getattr(operator, field) for field, name in attributes.items()}
        return OnnxForm(kind or operator.name, plain(found))

    return rule


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as ONNX has them: booleans as 0 and 1; what is None or an empty tuple is left out."""
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in attributes.items()
        if value is not None and value != ()
    }


def _window(operator: Any) -> dict[str, Any]:
    """The attributes that convolution and pooling share."""
    attributes: dict[str, Any] = {"strides": operator.strides, "dilations": operator.dilations}
    if operator.padding in _AUTO_PAD:
        attributes["auto_pad"] = _AUTO_PAD[operator.padding]
    else:
        attributes["pads"] = operator.pads
    return attributes


def _convolution(weights: int) -> Rule:
    """A convolution whose weights are operand number `weights`."""

    def rule(operator: Any, node: Node) -> OnnxForm:
        w = node.operands[weights]
        assert w is not None
        return OnnxForm(operator.name, {"kernel_shape": w.shape[2:], "group": operator.groups, **_window(operator)})

    return rule


def _transposed_convolution(operator: Any, node: Node) -> OnnxForm:
    form = _convolution(1)(operator, node)
    assert form is not None
    if not operator.output_shape:
        return OnnxForm(form.kind, {**form.attributes, "output_padding": operator.output_padding})
    attributes = {name: value for name, value in form.attributes.items() if name != "pads"}
    return OnnxForm(form.kind, {**attributes, "output_shape": operator.output_shape})


def _pooling(*same: str, kind: str | None = None, **renamed: str) -> Rule:
    """A pooling with more attributes of its own, as for `named`."""
    own = named(*same, kind=kind, **renamed)

    def rule(operator: Any, node: Node) -> OnnxForm:
        form = own(operator, node)
        assert form is not None
        attributes = {"kernel_shape": operator.kernel, "ceil_mode": int(operator.ceil_mode), **_window(operator)}
        return OnnxForm(form.kind, {**attributes, **form.attributes})

    return rule


def reduction(operator: Any, node: Node) -> OnnxForm | None:
    """Axes are an operand; an empty list of them means all in ONNX."""
    if operator.axes == ():
        return None
    constants = () if operator.axes is None else (np.array(operator.axes, np.int64),)
    return OnnxForm(operator.name, {"keepdims": int(operator.keep)}, constants)


def _with_axes(operator: Any, node: Node) -> OnnxForm:
    constants = () if operator.axes is None else (np.array(operator.axes, np.int64),)
    return OnnxForm(operator.name, {}, constants)


def _cumulative(operator: Any, node: Node) -> OnnxForm:
    flags = {"exclusive": int(operator.exclusive), "reverse": int(operator.reverse)}
    return OnnxForm(operator.name, flags, (np.array(operator.axis, np.int64),))


def _constant_of_shape(operator: Any, node: Node) -> OnnxForm:
    return OnnxForm("ConstantOfShape", {"value": np.array([operator.value], operator.element.dtype)})


def _split(operator: Any, node: Node) -> OnnxForm:
    has_sizes = len(node.operands) > 1
    return OnnxForm("Split", {"axis": operator.axis, **({} if has_sizes else {"num_outputs": operator.count})})


def _resize(operator: Any, node: Node) -> OnnxForm | None:
    form = named(
        "mode",
        "antialias",
        "exclude_outside",
        "axes",
        coordinates="coordinate_transformation_mode",
        nearest="nearest_mode",
        cubic="cubic_coeff_a",
        extrapolation="extrapolation_value",
        policy="keep_aspect_ratio_policy",
    )
    return None if operator.nearest == "legacy" else form(operator, node)  # "legacy" is Resize-10's


def _quantize(operator: Any, node: Node) -> OnnxForm | None:
    if operator.precision is not None:
        return None
    has_zero_point = len(node.operands) > 2
    output = {} if has_zero_point else {"output_dtype": ONNX_TYPES[operator.to]}
    if not operator.saturates:
        output["saturate"] = 0
    return OnnxForm("QuantizeLinear", {"axis": operator.axis, "block_size": operator.block, **output})


def _dequantize(operator: Any, node: Node) -> OnnxForm | None:
    scale = node.operands[1]
    if scale is None or scale.element is not operator.to:
        return None
    return OnnxForm("DequantizeLinear", {"axis": operator.axis, "block_size": operator.block})


def _group_normalization(operator: Any, node: Node) -> OnnxForm | None:
    if operator.per_group:  # the form before opset 21
        return None
    return OnnxForm("GroupNormalization", {"num_groups": operator.groups, "epsilon": operator.epsilon})


def _recurrent(**flags: str) -> Rule:
    """A recurrent network; `flags` are attributes of its own by field."""
    own = named(
        "direction",
        "activations",
        "clip",
        alphas="activation_alpha",
        betas="activation_beta",
        batch_first="layout",
        **flags,
    )

    def rule(operator: Any, node: Node) -> OnnxForm:
        form, r = own(operator, node), node.operands[2]
        assert form is not None
        assert r is not None
        return OnnxForm(form.kind, {**form.attributes, "hidden_size": r.shape[2]})

    return rule


def _space_to_depth(operator: Any, node: Node) -> OnnxForm | None:
    return None if operator.column_first else OnnxForm("SpaceToDepth", {"blocksize": operator.block})


def _depth_to_space(operator: Any, node: Node) -> OnnxForm:
    mode = "CRD" if operator.column_first else "DCR"
    return OnnxForm("DepthToSpace", {"blocksize": operator.block, "mode": mode})


def _gelu(operator: Any, node: Node) -> OnnxForm:
    return OnnxForm("Gelu", {"approximate": "tanh" if operator.approximate else "none"})


def _bit_shift(operator: Any, node: Node) -> OnnxForm:
    return OnnxForm("BitShift", {"direction": "LEFT" if operator.left else "RIGHT"})


def _cast(operator: Any, node: Node) -> OnnxForm:
    attributes: dict[str, Any] = {"to": ONNX_TYPES[operator.to]}
    if not operator.saturates:
        attributes["saturate"] = 0
    if operator.rounding != Cast.rounding:
        attributes["round_mode"] = operator.rounding
    return OnnxForm("Cast", attributes)


def _eye_like(operator: Any, node: Node) -> OnnxForm:
    return OnnxForm("EyeLike", {"dtype": ONNX_TYPES[operator.element], "k": operator.k})


RULES: Final[dict[str, Rule]] = {
    "ArgMax": named("axis", keep="keepdims", last="select_last_index"),
    "ArgMin": named("axis", keep="keepdims", last="select_last_index"),
    "AveragePool": _pooling("count_include_pad"),
    "BatchNormalization": named("epsilon"),
    "BitShift": _bit_shift,
    "Cast": _cast,
    "Celu": named("alpha"),
    "CenterCropPad": named("axes"),
    "Col2Im": named("strides", "dilations", "pads"),
    "Concat": named("axis"),
    "ConstantOfShape": _constant_of_shape,
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "ConvTranspose": _transposed_convolution,
    "CumProd": _cumulative,
    "CumSum": _cumulative,
    "DepthToSpace": _depth_to_space,
    "DequantizeLinear": _dequantize,
    "Einsum": named("equation"),
    "Elu": named("alpha"),
    "EyeLike": _eye_like,
    "Flatten": named("axis"),
    "GRU": _recurrent(linear_before_reset="linear_before_reset"),
    "Gather": named("axis"),
    "GatherElements": named("axis"),
    "GatherND": named(batch_axes="batch_dims"),
    "Gelu": _gelu,
    "Gemm": named("alpha", "beta", transpose_a="transA", transpose_b="transB"),
    "GlobalLpPool": named("p"),
    "GroupNormalization": _group_normalization,
    "HardSigmoid": named("alpha", "beta"),
    "Hardmax": named("axis"),
    "InstanceNormalization": named("epsilon"),
    "LRN": named("size", "alpha", "beta", "bias"),
    "LSTM": _recurrent(couples_input="input_forget"),
    "LayerNormalization": named("axis", "epsilon"),
    "LeakyRelu": named("alpha"),
    "LogSoftmax": named("axis"),
    "LpNormalization": named("axis", "p"),
    "LpPool": _pooling("p"),
    "MaxPool": _pooling(),
    "MaxPoolWithIndices": _pooling(kind="MaxPool", column_major="storage_order"),
    "MaxRoiPool": named(cells="pooled_shape", scale="spatial_scale"),
    "MaxUnpool": named("strides", "pads", kernel="kernel_shape"),
    "MeanVarianceNormalization": named("axes"),
    "Mod": named(truncate="fmod"),
    "OneHot": named("axis"),
    "Pad": named("mode"),
    "QLinearConv": _convolution(3),
    "QuantizeLinear": _quantize,
    "RNN": _recurrent(),
    "RMSNormalization": named("axis", "epsilon"),
    "Reshape": named(allow_zero="allowzero"),
    "Resize": _resize,
    "ReverseSequence": named("time_axis", "batch_axis"),
    "ScatterElements": named("axis", "reduction"),
    "ScatterND": named("reduction"),
    "Selu": named("alpha", "gamma"),
    "Shape": named("start", "end"),
    "Shrink": named(bias="bias", threshold="lambd"),
    "Softmax": named("axis"),
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _with_axes,
    "Swish": named("alpha"),
    "ThresholdedRelu": named("alpha"),
    "TopK": named("axis", "largest"),
    "Transpose": named(permutation="perm"),
    "Trilu": named("upper"),
    "Unsqueeze": _with_axes,
}
"""Operators with fields. Those without go by their `onnx` name; those that are not here are in the own domain."""
