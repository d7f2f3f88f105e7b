"""Writes an ONNX model node by node in any opset from 11 on, with seeded random weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
AXES_ARE_INPUTS = 13  # of Squeeze, Unsqueeze, Split and ReduceSum, from this opset on
MEAN_AXES_ARE_INPUTS = 18

Shape = Sequence[int | str]


class NetworkWriter:
    """Collects nodes and initializers; every method returns the name of what it made.

    Weights are normal with deviation `gain / sqrt(fan-in)`, so that signals neither vanish nor grow.
    """

    def __init__(self, name: str, seed: int, opset: int = OPSET) -> None:
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result."""
        return self.nodes(kind, 1, *inputs, **attributes)[0]

    def nodes(self, kind: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with several results, named as PyTorch names them."""
        name = f"/{kind}_{len(self._nodes)}"
        outputs = [f"{name}_output_{index}" for index in range(results)]
        self._nodes.append(helper.make_node(kind, list(inputs), outputs, name=name, **attributes))
        return outputs

    def parameter(self, array: np.ndarray) -> str:
        """An initializer."""
        name = f"parameter.{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def normal(self, *shape: int, deviation: float = 1.0) -> str:
        return self.parameter(self.random.standard_normal(shape, dtype=np.float32) * np.float32(deviation))

    def uniform(self, *shape: int, low: float = 0.5, high: float = 1.5) -> str:
        return self.parameter(self.random.uniform(low, high, shape).astype(np.float32))

    def constant(self, value: object, dtype: type = np.float32) -> str:
        """A Constant node, as the exporter writes numbers of the formula."""
        return self.node("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def reduce_mean(self, x: str, axis: int) -> str:
        """With the axis kept."""
        if self.opset >= MEAN_AXES_ARE_INPUTS:
            return self.node("ReduceMean", x, self.integers(axis))
        return self.node("ReduceMean", x, axes=[axis])

    def unsqueeze(self, x: str, axis: int) -> str:
        if self.opset >= AXES_ARE_INPUTS:
            return self.node("Unsqueeze", x, self.integers(axis))
        return self.node("Unsqueeze", x, axes=[axis])

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        if self.opset >= AXES_ARE_INPUTS:
            return self.nodes("Split", len(sizes), x, self.integers(*sizes), axis=axis)
        return self.nodes("Split", len(sizes), x, axis=axis, split=list(sizes))

    def slice(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        return self.node("Slice", x, *(self.integers(number) for number in (start, end, axis, step)))

    def reshape(self, x: str, *extents: int | str) -> str:
        """To extents that are numbers, or names of int64 scalars that the model computes."""
        if all(isinstance(extent, int) for extent in extents):
            return self.node("Reshape", x, self.integers(*(int(extent) for extent in extents)))
        parts = [self.integers(extent) if isinstance(extent, int) else self.unsqueeze(extent, 0) for extent in extents]
        return self.node("Reshape", x, self.node("Concat", *parts, axis=0))

    def extent(self, x: str, axis: int) -> str:
        """An extent of x as int64 scalar."""
        return self.node("Gather", self.node("Shape", x), self.constant(axis, np.int64), axis=0)

    def convolution(
        self,
        x: str,
        channels: int,
        filters: int,
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        gain: float = 2**0.5,
        pad: int | None = None,
        bias: bool = True,
    ) -> str:
        """A square convolution, by default padded so that stride 1 keeps the extents."""
        fan_in = channels // groups * kernel * kernel
        pad = kernel // 2 if pad is None else pad
        weights = self.normal(filters, channels // groups, kernel, kernel, deviation=gain / fan_in**0.5)
        return self.node(
            "Conv",
            x,
            weights,
            *([self.normal(filters, deviation=0.1)] if bias else []),
            dilations=[1, 1],
            group=groups,
            kernel_shape=[kernel, kernel],
            pads=[pad] * 4,
            strides=[stride, stride],
        )

    def batch_normalization(self, x: str, channels: int) -> str:
        scale, bias = self.uniform(channels, low=0.8, high=1.2), self.normal(channels, deviation=0.1)
        mean, variance = self.normal(channels, deviation=0.1), self.uniform(channels)
        return self.node("BatchNormalization", x, scale, bias, mean, variance, epsilon=1e-5, momentum=0.9)

    def linear(self, x: str, inner: int, outer: int, gain: float = 1.0) -> str:
        """bias + x @ weights, on the last axis of a tensor of any rank."""
        product = self.node("MatMul", x, self.normal(inner, outer, deviation=gain / inner**0.5))
        return self.node("Add", self.normal(outer, deviation=0.1), product)

    def layer_normalization(self, x: str, extent: int, epsilon: float = 1e-5) -> str:
        """Over the last axis: one operator where the opset has it, else spelled out."""
        scale, bias = self.uniform(extent, low=0.8, high=1.2), self.normal(extent, deviation=0.1)
        if self.opset >= OPSET:
            return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)
        return self.spelled_layer_normalization(x, scale, bias, epsilon)

    def spelled_layer_normalization(self, x: str, scale: str, bias: str, epsilon: float = 1e-5) -> str:
        """Over the last axis, as primitives."""
        centred = self.node("Sub", x, self.reduce_mean(x, -1))
        variance = self.reduce_mean(self.node("Pow", centred, self.constant(2.0)), -1)
        deviation = self.node("Sqrt", self.node("Add", variance, self.constant(epsilon)))
        scaled = self.node("Mul", self.node("Div", centred, deviation), scale)
        return self.node("Add", scaled, bias)

    def gelu(self, x: str) -> str:
        """The exact form, spelled out."""
        error = self.node("Erf", self.node("Div", x, self.constant(2**0.5)))
        doubled = self.node("Mul", x, self.node("Add", error, self.constant(1.0)))
        return self.node("Mul", doubled, self.constant(0.5))

    def silu(self, x: str) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

    def gemm(self, x: str, inner: int, outer: int, gain: float = 1.0) -> str:
        """x @ weights^T + bias of a matrix x."""
        weights = self.normal(outer, inner, deviation=gain / inner**0.5)
        return self.node("Gemm", x, weights, self.normal(outer, deviation=0.1), transB=1)

    def heads(self, x: str, heads: int, size: int, length: int, perm: Sequence[int] = (0, 2, 1, 3)) -> str:
        """[batch, length, heads * size] to [batch, heads, length, size], or as `perm` says."""
        split = self.node("Reshape", x, self.integers(0, length, heads, size))
        return self.node("Transpose", split, perm=list(perm))

    def self_attention(self, x: str, width: int, heads: int, length: int, mask: str | None = None) -> str:
        """Multi-head self-attention of x [batch, length, width], spelled out; `mask` is added to the scores."""
        size = width // heads
        query = self.heads(self.linear(x, width, width), heads, size, length)
        key = self.heads(self.linear(x, width, width), heads, size, length, (0, 2, 3, 1))
        value = self.heads(self.linear(x, width, width), heads, size, length)
        scores = self.node("Div", self.node("MatMul", query, key), self.constant(size**0.5))
        if mask is not None:
            scores = self.node("Add", scores, mask)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        merged = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]), self.integers(0, length, width))
        return self.linear(merged, width, width, gain=0.5)

    def model(
        self, inputs: Mapping[str, tuple[int, Shape]], outputs: Mapping[str, tuple[str, int, Shape]]
    ) -> onnx.ModelProto:
        """The model. Inputs give element type and shape by name; outputs give also the value that they are."""
        for name, (value, _, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name], name=f"/{name}"))
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [helper.make_tensor_value_info(name, *port) for name, port in inputs.items()],
            [helper.make_tensor_value_info(name, element, shape) for name, (_, element, shape) in outputs.items()],
            self._initializers,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION)

    def float_model(self, inputs: Mapping[str, Shape], outputs: Mapping[str, tuple[str, Shape]]) -> onnx.ModelProto:
        """A model whose inputs and outputs are all float32."""
        return self.model(
            {name: (TensorProto.FLOAT, shape) for name, shape in inputs.items()},
            {name: (value, TensorProto.FLOAT, shape) for name, (value, shape) in outputs.items()},
        )

    def image_classifier(self, x: str, features: int, extent: int, classes: int) -> onnx.ModelProto:
        """The model from image "x" to `classes` logits, which come from pooled features [n, features]."""
        logits = self.gemm(x, features, classes)
        image = (TensorProto.FLOAT, (1, 3, extent, extent))
        return self.model({"x": image}, {"logits": (logits, TensorProto.FLOAT, (1, classes))})
