"""Models of one ONNX node for operators of the graph: attributes and inputs as the ONNX specification has them.

The table is written from the specification, not from the importer, so that both can be checked against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from glowstone.graph import OPERATORS, Operator, Sample, as_tuple
from glowstone.ops.recurrent import SAMPLE_HIDDEN
from glowstone.types import ElementType

Attributes = dict[str, Any]
Operands = tuple[np.ndarray | None, ...]

OLDEST_OPSET = 7
"""What ONNX Runtime still reads."""


@dataclass(frozen=True)
class OnnxNodeCase:
    """A model, the arrays to feed, by name, and the ONNX operator and opset."""

    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    kind: str
    opset: int


def onnx_case(sample: Sample) -> OnnxNodeCase:
    """The model of a sample. Operands that decide shapes are initializers, the others inputs."""
    operator = sample.operator
    assert operator.onnx is not None
    kind, _ = operator.onnx.split("-")
    operands = (*sample.operands, *axes_operands(operator))
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(operands)]
    arrays = {name: np.asarray(array) for name, array in zip(names, operands, strict=True) if array is not None}
    fixed = {name for index, name in enumerate(names) if name and _is_host(operator, index)}
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()
        if name not in fixed
    ]
    results = [np.asarray(result) for result in as_tuple(operator.reference(*sample.operands))]
    outputs = result_names(len(results))
    graph = helper.make_graph(
        [onnx_node(operator, names, outputs, "the node")],
        "one",
        ports,
        [_result_port(name, result) for name, result in zip(outputs, results, strict=True)],
        [numpy_helper.from_array(arrays[name], name) for name in sorted(fixed)],
    )
    opset = needed_opset(operator, len(sample.operands))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    return OnnxNodeCase(model, {name: array for name, array in arrays.items() if name not in fixed}, kind, opset)


_OPSETS_OF_OPERANDS = {("Attention", 7): 24}
"""Opsets that operators with this many operands need, where a later one added some."""


def onnx_node(operator: Operator, names: Sequence[str], outputs: Sequence[str], name: str) -> onnx.NodeProto:
    """The ONNX node of an operator; `names` are those of its operands and then of `axes_operands`."""
    assert operator.onnx is not None
    kind, _ = operator.onnx.split("-")
    attributes = _ATTRIBUTES.get(kind, lambda _: {})(operator)
    if kind == "Split" and len(names) > 1:
        del attributes["num_outputs"]  # the sizes say it
    return helper.make_node(kind, names, outputs, name=name, **attributes)


def needed_opset(operator: Operator, operand_count: int) -> int:
    """The opset of the form that `onnx_node` writes."""
    assert operator.onnx is not None
    kind, version = operator.onnx.split("-")
    return max(int(version), OLDEST_OPSET, _OPSETS_OF_OPERANDS.get((kind, operand_count), 0))


def result_names(count: int) -> list[str]:
    """Names of the results of a case: "y", or "y0", "y1" ... of several."""
    return ["y"] if count == 1 else [f"y{index}" for index in range(count)]


def _result_port(name: str, result: np.ndarray) -> onnx.ValueInfoProto:
    symbols = [f"extent_{axis}" for axis in range(result.ndim)]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(result.dtype), symbols)


def _is_host(operator: Operator, index: int) -> bool:
    rules = operator.operands
    return (index >= len(rules) and not rules[-1].variadic) or rules[min(index, len(rules) - 1)].host


def axes_operands(operator: Operator) -> Operands:
    """Axes that are a field of ours and an input of the ONNX operator."""
    kind = operator.name
    if kind in ("Squeeze", "Unsqueeze") or kind.startswith("Reduce"):
        axes = operator.attributes()["axes"]
        return () if axes is None else (np.array(axes, np.int64),)
    if kind in ("CumSum", "CumProd", "DFT"):
        return (np.array(operator.attributes()["axis"], np.int64),)
    return ()


def _fields(**names: str) -> Callable[[Operator], Attributes]:
    """ONNX attributes that are fields of ours, by ONNX name; those that are None or () are left out."""

    def attributes(operator: Operator) -> Attributes:
        values = {name: getattr(operator, field) for name, field in names.items()}
        return {
            name: int(value) if isinstance(value, bool) else value
            for name, value in values.items()
            if value not in (None, ())
        }

    return attributes


_AUTO_PAD = {"explicit": "NOTSET", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def _window(**names: str) -> Callable[[Operator], Attributes]:
    further = _fields(strides="strides", dilations="dilations", pads="pads", **names)

    def attributes(operator: Operator) -> Attributes:
        padding = operator.attributes()["padding"]
        result = further(operator)
        if padding != "explicit":
            del result["pads"]
            result["auto_pad"] = _AUTO_PAD[padding]
        return result

    return attributes


def _constant(operator: Operator) -> Attributes:
    return {"value": numpy_helper.from_array(operator.attributes()["tensor"].array)}


def _constant_of_shape(operator: Operator) -> Attributes:
    fields = operator.attributes()
    return {"value": numpy_helper.from_array(np.array([fields["value"]], fields["element"].dtype))}


def _roi_align(operator: Operator) -> Attributes:
    fields = operator.attributes()
    rows, columns = fields["cells"]
    return {
        "mode": "max" if fields["pooling"] == "max" else "avg",
        "coordinate_transformation_mode": "half_pixel" if fields["half_pixel"] else "output_half_pixel",
        "output_height": rows,
        "output_width": columns,
        "sampling_ratio": fields["points"],
        "spatial_scale": fields["scale"],
    }


def _block_move(operator: Operator) -> Attributes:
    fields = operator.attributes()
    return {"blocksize": fields["block"], "mode": "CRD" if fields["column_first"] else "DCR"}


def _max_pool(operator: Operator) -> Attributes:
    attributes = _window(kernel_shape="kernel", ceil_mode="ceil_mode")(operator)
    if operator.attributes().get("column_major"):
        attributes["storage_order"] = 1
    return attributes


def _quantization(**elements: str) -> Callable[[Operator], Attributes]:
    def attributes(operator: Operator) -> Attributes:
        fields = operator.attributes()
        numbers = {name: helper.np_dtype_to_tensor_dtype(fields[field].dtype) for name, field in elements.items()}
        return {"axis": fields["axis"], "block_size": fields["block"], **numbers}

    return attributes


def _number_of(element: ElementType) -> int:
    return helper.np_dtype_to_tensor_dtype(element.dtype)


def _to(operator: Operator) -> Attributes:
    return {"to": _number_of(operator.attributes()["to"])}


def _signal_window(operator: Operator) -> Attributes:
    fields = operator.attributes()
    return {"output_datatype": _number_of(fields["element"]), "periodic": int(fields["periodic"])}


def _n_grams(operator: Operator) -> Attributes:
    fields = operator.attributes()
    return {
        "mode": fields["mode"],
        "min_gram_length": fields["sizes"][0],
        "max_gram_length": fields["sizes"][1],
        "max_skip_count": fields["skips"],
        "pool_int64s": fields["pool"],
        "ngram_counts": fields["starts"],
        "ngram_indexes": fields["columns"],
        **({"weights": fields["weights"]} if fields["weights"] else {}),
    }


_REDUCTION = _fields(keepdims="keep")


def _network(operator: Operator) -> Attributes:
    fields = operator.attributes()
    names = {
        "direction": "direction",
        "activations": "activations",
        "activation_alpha": "alphas",
        "activation_beta": "betas",
        "clip": "clip",
        "linear_before_reset": "linear_before_reset",
        "input_forget": "couples_input",
    }
    attributes = {name: fields[field] for name, field in names.items() if fields.get(field) not in (None, ())}
    flags = {name: int(value) if isinstance(value, bool) else value for name, value in attributes.items()}
    return {**flags, "hidden_size": SAMPLE_HIDDEN, "layout": int(fields["batch_first"])}


_LOSS = _fields(reduction="reduction", ignore_index="ignored")
_ARG_REDUCTION = _fields(axis="axis", keepdims="keep", select_last_index="last")
_CUMULATIVE = _fields(exclusive="exclusive", reverse="reverse")
_ATTRIBUTES: dict[str, Callable[[Operator], Attributes]] = {
    "TfIdfVectorizer": _n_grams,
    "DFT": _fields(inverse="inverse", onesided="one_sided"),
    "STFT": _fields(onesided="one_sided"),
    "MelWeightMatrix": lambda operator: {"output_datatype": _number_of(operator.attributes()["element"])},
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "LeakyRelu": _fields(alpha="alpha"),
    "HardSigmoid": _fields(alpha="alpha", beta="beta"),
    **dict.fromkeys(("Celu", "Elu", "SwiGLU", "Swish", "ThresholdedRelu"), _fields(alpha="alpha")),
    "Selu": _fields(alpha="alpha", gamma="gamma"),
    "Shrink": _fields(bias="bias", lambd="threshold"),
    "Gelu": lambda operator: {"approximate": "tanh" if operator.attributes()["approximate"] else "none"},
    "IsInf": _fields(detect_negative="negative", detect_positive="positive"),
    "Mod": _fields(fmod="truncate"),
    "BitShift": lambda operator: {"direction": "LEFT" if operator.attributes()["left"] else "RIGHT"},
    "BitCast": _to,
    "EyeLike": lambda operator: {**_fields(k="k")(operator), "dtype": _number_of(operator.attributes()["element"])},
    "Trilu": _fields(upper="upper"),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _signal_window),
    **dict.fromkeys(("Hardmax", "LogSoftmax"), _fields(axis="axis")),
    "Cast": lambda operator: {**_to(operator), **_fields(saturate="saturates", round_mode="rounding")(operator)},
    "Shape": _fields(start="start", end="end"),
    "Reshape": _fields(allowzero="allow_zero"),
    "Flatten": _fields(axis="axis"),
    "Transpose": _fields(perm="permutation"),
    "Concat": _fields(axis="axis"),
    "Gather": _fields(axis="axis"),
    "Split": _fields(axis="axis", num_outputs="count"),
    "GatherElements": _fields(axis="axis"),
    "GatherND": _fields(batch_dims="batch_axes"),
    "ScatterElements": _fields(axis="axis", reduction="reduction"),
    "ScatterND": _fields(reduction="reduction"),
    "OneHot": _fields(axis="axis"),
    "Pad": _fields(mode="mode"),
    "RoiAlign": _roi_align,
    "MaxRoiPool": _fields(pooled_shape="cells", spatial_scale="scale"),
    "TensorScatter": lambda operator: {
        "axis": operator.attributes()["axis"],
        "mode": "circular" if operator.attributes()["circular"] else "linear",
    },
    "GridSample": _fields(mode="mode", padding_mode="padding", align_corners="align_corners"),
    "AffineGrid": _fields(align_corners="align_corners"),
    "Col2Im": _fields(strides="strides", dilations="dilations", pads="pads"),
    "Resize": _fields(
        mode="mode",
        coordinate_transformation_mode="coordinates",
        nearest_mode="nearest",
        cubic_coeff_a="cubic",
        antialias="antialias",
        exclude_outside="exclude_outside",
        extrapolation_value="extrapolation",
        keep_aspect_ratio_policy="policy",
        axes="axes",
    ),
    "DepthToSpace": _block_move,
    "SpaceToDepth": lambda operator: {"blocksize": operator.attributes()["block"]},
    "CenterCropPad": _fields(axes="axes"),
    "ArgMax": _ARG_REDUCTION,
    "ArgMin": _ARG_REDUCTION,
    "TopK": _fields(axis="axis", largest="largest"),
    "CumSum": _CUMULATIVE,
    "CumProd": _CUMULATIVE,
    "Softmax": _fields(axis="axis"),
    "LayerNormalization": _fields(axis="axis", epsilon="epsilon"),
    "NegativeLogLikelihoodLoss": _LOSS,
    "SoftmaxCrossEntropyLoss": _LOSS,
    "RNN": _network,
    "GRU": _network,
    "LSTM": _network,
    "ReverseSequence": _fields(time_axis="time_axis", batch_axis="batch_axis"),
    "RMSNormalization": _fields(axis="axis", epsilon="epsilon"),
    "InstanceNormalization": _fields(epsilon="epsilon"),
    "GroupNormalization": _fields(num_groups="groups", epsilon="epsilon"),
    "LpNormalization": _fields(axis="axis", p="p"),
    "MeanVarianceNormalization": _fields(axes="axes"),
    "LRN": _fields(size="size", alpha="alpha", beta="beta", bias="bias"),
    "BatchNormalization": _fields(epsilon="epsilon"),
    "Gemm": _fields(alpha="alpha", beta="beta", transA="transpose_a", transB="transpose_b"),
    "Conv": _window(group="groups"),
    "Attention": _fields(
        is_causal="causal",
        q_num_heads="q_heads",
        kv_num_heads="kv_heads",
        scale="scale",
        softcap="soft_cap",
        qk_matmul_output_mode="scores",
    ),
    "RotaryEmbedding": _fields(interleaved="interleaved", num_heads="heads", rotary_embedding_dim="size"),
    "Einsum": _fields(equation="equation"),
    "MaxUnpool": _fields(kernel_shape="kernel", strides="strides", pads="pads"),
    "CausalConvWithState": _fields(activation="activation"),
    "LinearAttention": _fields(q_num_heads="heads", kv_num_heads="groups", scale="scale", update_rule="rule"),
    "DeformConv": _fields(strides="strides", dilations="dilations", pads="pads", group="groups", offset_group="parts"),
    "ConvTranspose": _window(group="groups", output_padding="output_padding", output_shape="output_shape"),
    "ConvInteger": _window(group="groups"),
    "QLinearConv": _window(group="groups"),
    "MaxPool": _max_pool,
    "LpPool": _window(kernel_shape="kernel", ceil_mode="ceil_mode", p="p"),
    "GlobalLpPool": _fields(p="p"),
    "QuantizeLinear": lambda operator: {
        **_quantization(output_dtype="to")(operator),
        **_fields(saturate="saturates")(operator),
    },
    "DequantizeLinear": _quantization(output_dtype="to"),
    "AveragePool": _window(kernel_shape="kernel", ceil_mode="ceil_mode", count_include_pad="count_include_pad"),
    **dict.fromkeys((kind for kind in OPERATORS if kind.startswith("Reduce")), _REDUCTION),
}
"""Attributes by ONNX operator; the others have none."""
