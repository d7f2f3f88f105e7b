"""Writes an ONNX model node by node, with seeded random weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8

Shape = Sequence[int | str]


class ModelWriter:
    """Collects nodes and initializers; the methods return the name of what they made.

    Weights are normal with deviation `gain / sqrt(fan-in)`, so that signals neither vanish nor grow.
    """

    def __init__(self, name: str, seed: int, opset: int = OPSET) -> None:
        self._name = name
        self._opset = opset
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """A node with one result."""
        return self.nodes(kind, 1, *inputs, **attributes)[0]

    def nodes(self, kind: str, results: int, *inputs: str, **attributes: object) -> list[str]:
        """A node with several results."""
        name = f"{kind.lower()}_{len(self._nodes)}"
        outputs = [f"{name}_{index}" if index else name for index in range(results)]
        self._nodes.append(helper.make_node(kind, list(inputs), outputs, name=name, **attributes))
        return outputs

    def tensor(self, array: np.ndarray) -> str:
        """An initializer."""
        name = f"weight_{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(array, name))
        return name

    def scalar(self, value: float) -> str:
        return self.tensor(np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        return self.tensor(np.array(values, np.int64))

    def normal(self, *shape: int, deviation: float = 1.0) -> str:
        """Normal values."""
        return self.tensor((self._random.standard_normal(shape, dtype=np.float32)) * np.float32(deviation))

    def about_one(self, *shape: int) -> str:
        """Values from 0.8 to 1.2, as scales of a normalization are."""
        return self.tensor(self._random.uniform(0.8, 1.2, shape).astype(np.float32))

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
    ) -> str:
        """A square convolution with bias; by default padded so that stride 1 keeps the extents."""
        fan_in = channels // groups * kernel * kernel
        pad = kernel // 2 if pad is None else pad
        return self.node(
            "Conv",
            x,
            self.normal(filters, channels // groups, kernel, kernel, deviation=gain / fan_in**0.5),
            self.normal(filters, deviation=0.1),
            dilations=[1, 1],
            group=groups,
            kernel_shape=[kernel, kernel],
            pads=[pad] * 4,
            strides=[stride, stride],
        )

    def linear(self, x: str, inner: int, outer: int, gain: float = 1.0) -> str:
        """x @ weights + bias, on the last axis."""
        product = self.node("MatMul", x, self.normal(inner, outer, deviation=gain / inner**0.5))
        return self.node("Add", self.normal(outer, deviation=0.1), product)

    def gemm(self, x: str, inner: int, outer: int, gain: float = 1.0) -> str:
        """x @ weights^T + bias of a matrix x."""
        weights = self.normal(outer, inner, deviation=gain / inner**0.5)
        return self.node("Gemm", x, weights, self.normal(outer, deviation=0.1), transB=1)

    def layer_normalization(self, x: str, extent: int, epsilon: float = 1e-6) -> str:
        """Over the last axis, as one operator."""
        scale, bias = self.about_one(extent), self.normal(extent, deviation=0.1)
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def gelu(self, x: str) -> str:
        """The exact form, spelled out."""
        error = self.node("Erf", self.node("Div", x, self.scalar(2**0.5)))
        shifted = self.node("Add", error, self.scalar(1.0))
        return self.node("Mul", self.node("Mul", x, shifted), self.scalar(0.5))

    def silu(self, x: str) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

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
        scores = self.node("Div", self.node("MatMul", query, key), self.scalar(size**0.5))
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
            self._nodes.append(helper.make_node("Identity", [value], [name], name=f"output_{name}"))
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [helper.make_tensor_value_info(name, element, list(shape)) for name, (element, shape) in inputs.items()],
            [
                helper.make_tensor_value_info(name, element, list(shape))
                for name, (_, element, shape) in outputs.items()
            ],
            self._initializers,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=IR_VERSION)

    def image_classifier(self, x: str, features: int, extent: int, classes: int) -> onnx.ModelProto:
        """The model from image "x" to `classes` logits, which come from pooled features [n, features]."""
        logits = self.gemm(x, features, classes)
        image = (TensorProto.FLOAT, (1, 3, extent, extent))
        return self.model({"x": image}, {"logits": (logits, TensorProto.FLOAT, (1, classes))})
