"""A float32 model in half precision, as converters make it: weights, constants, casts, inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

_FLOAT32_OPERANDS = {"Resize": (1, 2)}  # regions and scales are float32 whatever the data is


def to_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that computes in float16. Every float32 input and output becomes float16."""
    half = onnx.ModelProto()
    half.CopyFrom(model)
    graph = half.graph
    kept = {node.input[index] for node in graph.node for index in _kept_operands(node)}
    for one in graph.initializer:
        if one.name not in kept:
            _convert_tensor(one)
    for node in graph.node:
        if not kept.intersection(node.output):
            _convert_node(node)
    for port in (*graph.input, *graph.output):
        if port.type.tensor_type.elem_type == TensorProto.FLOAT:
            port.type.tensor_type.elem_type = TensorProto.FLOAT16
    del graph.value_info[:]
    return half


def _kept_operands(node: onnx.NodeProto) -> Iterable[int]:
    return (index for index in _FLOAT32_OPERANDS.get(node.op_type, ()) if index < len(node.input))


def _convert_node(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            _convert_tensor(attribute.t)
        elif node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.FLOAT16


def _convert_tensor(tensor: onnx.TensorProto) -> None:
    """In place. Numbers beyond the range of half precision become its limits, as masks need."""
    if tensor.data_type == TensorProto.FLOAT:
        limits = np.finfo(np.float16)
        array = np.clip(numpy_helper.to_array(tensor), limits.min, limits.max)
        tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float16), tensor.name))
