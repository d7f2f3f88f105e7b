"""Two small models as exporters write them: a convolutional network and a transformer block, with seeded weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, VOCABULARY = 8, 2, 11


class ModelWriter:
    """Collects nodes and initializers. Every node's first output is returned by `node`."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name + ":0"], name=name, **attributes))
        return name + ":0"

    def weights(self, *shape: int, scale: float = 0.3) -> str:
        return self.tensor((self.random.standard_normal(shape) * scale).astype(np.float32))

    def tensor(self, array: object, dtype: type | None = None) -> str:
        name = f"tensor_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def model(self, input: onnx.ValueInfoProto, output: onnx.ValueInfoProto) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "block", [input], [output], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def small_convnet() -> onnx.ModelProto:
    """x f32 [n, 3, h, w] to y [n, 5]: batch normalization, depthwise, hard swish, squeeze and excite, residual."""
    write = ModelWriter(0)
    stem = write.node("Conv", "x", write.weights(6, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    parameters = [write.weights(6), write.weights(6), write.weights(6)]
    variance = write.tensor(write.random.uniform(0.5, 2, 6), np.float32)
    active = write.node("Relu", write.node("BatchNormalization", stem, *parameters, variance))
    depthwise = write.node("Conv", active, write.weights(6, 1, 3, 3), write.weights(6), group=6, pads=[1, 1, 1, 1])
    scaled = write.node("Add", write.node("Mul", write.weights(6, 1, 1), depthwise), write.weights(1, 6, 1, 1))
    swish = _hard_swish(write, scaled)
    squeezed = write.node("Conv", write.node("GlobalAveragePool", swish), write.weights(6, 6, 1, 1), write.weights(6))
    gate = write.node("HardSigmoid", squeezed, alpha=0.25, beta=0.5)
    joined = write.node("Add", write.node("Identity", write.node("Mul", swish, gate)), active)
    pooled = write.node("MaxPool", joined, kernel_shape=[2, 2], strides=[2, 2])
    both = write.node("Concat", pooled, write.node("Sub", pooled, write.weights(1)), axis=1)
    features = write.node("Flatten", write.node("GlobalAveragePool", both))
    scores = write.node("Gemm", features, write.weights(5, 12), write.weights(5), transB=1)
    write.nodes.append(helper.make_node("Softmax", [scores], ["y"], name="last", axis=-1))
    return write.model(
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5]),
    )


def _hard_swish(write: ModelWriter, x: str) -> str:
    shifted = write.node("Add", x, write.tensor(3, np.float32))
    clipped = write.node("Clip", shifted, write.tensor(0, np.float32), write.tensor(6, np.float32))
    return write.node("Div", write.node("Mul", x, clipped), write.tensor([6], np.float32))


def transformer_block() -> onnx.ModelProto:
    """ids i64 [batch, length] to y f32 [batch, length, 8]: embedding, attention, GELU; norms spelled out."""
    write = ModelWriter(1)
    x = write.node("Gather", write.weights(VOCABULARY, HIDDEN, scale=1.0), "ids")
    normal = _layer_normalization(write, x)
    queries, keys, values = (_heads(write, normal) for _ in range(3))
    scores = write.node("MatMul", queries, write.node("Transpose", keys, perm=[0, 1, 3, 2]))
    weights = write.node("Softmax", write.node("Div", scores, write.tensor(np.sqrt(HIDDEN / HEADS), np.float32)))
    mixed = write.node("Transpose", write.node("MatMul", weights, values), perm=[0, 2, 1, 3])
    attended = _linear(write, write.node("Reshape", mixed, _shape(write, normal, [HIDDEN])))
    residual = write.node("Add", attended, write.node("Cast", x, to=TensorProto.FLOAT))
    hidden = _linear(write, _layer_normalization(write, residual))
    error = write.node("Erf", write.node("Div", hidden, write.tensor(np.sqrt(2), np.float32)))
    doubled = write.node("Mul", hidden, write.node("Add", error, write.tensor(1, np.float32)))
    gelu = write.node("Mul", doubled, write.tensor(0.5, np.float32))
    write.nodes.append(helper.make_node("Add", [residual, gelu], ["y"], name="last"))
    return write.model(
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", HIDDEN]),
    )


def _layer_normalization(write: ModelWriter, x: str) -> str:
    centred = write.node("Sub", x, write.node("ReduceMean", x, axes=[-1]))
    variance = write.node("ReduceMean", write.node("Pow", centred, write.tensor(2, np.float32)), axes=[-1])
    deviation = write.node("Sqrt", write.node("Add", variance, write.tensor(1e-5, np.float32)))
    normal = write.node("Div", centred, deviation)
    return write.node("Add", write.node("Mul", normal, write.weights(HIDDEN)), write.weights(HIDDEN))


def _linear(write: ModelWriter, x: str) -> str:
    return write.node("Add", write.node("MatMul", x, write.weights(HIDDEN, HIDDEN)), write.weights(HIDDEN))


def _heads(write: ModelWriter, x: str) -> str:
    split = write.node("Reshape", _linear(write, x), _shape(write, x, [HEADS, HIDDEN // HEADS]))
    return write.node("Transpose", split, perm=[0, 2, 1, 3])


def _shape(write: ModelWriter, x: str, rest: list[int]) -> str:
    """The first two extents of x, then constants, as exporters compute it."""
    shape = write.node("Shape", x)
    extents = []
    for axis in (0, 1):
        extent = write.node("Gather", shape, write.tensor(axis, np.int64))
        extents.append(write.node("Unsqueeze", extent, write.tensor([0], np.int64)))
    return write.node("Concat", *extents, write.tensor(rest, np.int64), axis=0)
