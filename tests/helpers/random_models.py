"""Random small convolutional networks and transformer blocks as ONNX models, seeded."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
ODD_CHANNELS = (1, 3, 5, 8, 9, 16, 17, 24, 33)


class ModelWriter:
    """Collects nodes and initializers; values are (name, shape)."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.constants_as_nodes = bool(self.random.integers(2))
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def weight(self, *shape: int, low: float | None = None) -> str:
        """Normal numbers scaled by the fan-in, or uniform ones from `low` to 2."""
        scale = 1 / np.sqrt(max(np.prod(shape[1:]), 1))
        array = self.random.standard_normal(shape) * scale if low is None else self.random.uniform(low, 2, shape)
        return self.constant(array.astype(np.float32))

    def constant(self, array: np.ndarray) -> str:
        """An initializer, or a Constant node in half of the models."""
        name = self.name()
        tensor = numpy_helper.from_array(np.asarray(array), name)
        if self.constants_as_nodes:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.initializers.append(tensor)
        return name

    def emit(self, kind: str, *operands: str, **attributes: Any) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def model(self, inputs: dict[str, list[int | str]], output: str) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self.initializers,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        return made.SerializeToString()


def random_convnet(seed: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """A network of 3 to 8 blocks over an image of 7 to 25 pixels a side, and an input."""
    writer = ModelWriter(seed)
    random = writer.random
    channels = int(random.choice([1, 3, 4, 8, 17]))
    height, width = (int(size) for size in random.integers(7, 26, 2))
    batch = int(random.integers(1, 3))
    image = random.standard_normal((batch, channels, height, width)).astype(np.float32)
    value, shape = "image", [batch, channels, height, width]
    for _ in range(int(random.integers(3, 9))):
        block = _BLOCKS[int(random.integers(len(_BLOCKS)))]
        value, shape = block(writer, value, shape)
    if random.integers(2):
        pooled = writer.emit("GlobalAveragePool", value)
        flat = writer.emit("Flatten", pooled)
        weights = writer.weight(shape[1], 11)
        value = writer.emit("Softmax", writer.emit("Gemm", flat, weights, writer.weight(11)))
    dims: list[int | str] = ["N", channels, "H", "W"] if random.integers(2) else [batch, channels, height, width]
    return writer.model({"image": dims}, value), {"image": image}


def _convolution(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    random = writer.random
    outputs = int(random.choice(ODD_CHANNELS))
    kernel = [int(size) for size in random.integers(1, 4, 2)]
    strides = [int(size) for size in random.integers(1, 3, 2)]
    dilations = [int(random.integers(1, 3)) if size > 1 else 1 for size in kernel]
    pads = [int(random.integers(0, reach)) for reach in _reach(kernel, dilations)] * 2
    room = [
        extent + 2 * pad - reach for extent, pad, reach in zip(shape[2:], pads, _reach(kernel, dilations), strict=False)
    ]
    if min(room) < 0:
        return value, shape
    operands = [value, writer.weight(outputs, shape[1], *kernel)]
    if random.integers(2):
        operands.append(writer.weight(outputs))
    result = writer.emit("Conv", *operands, strides=strides, dilations=dilations, pads=pads)
    spatial = [left // stride + 1 for left, stride in zip(room, strides, strict=True)]
    return _normalized(writer, result, [shape[0], outputs, *spatial])


def _reach(kernel: list[int], dilations: list[int]) -> list[int]:
    return [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]


def _depthwise(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    size = int(writer.random.choice([3, 5]))
    weights = writer.weight(shape[1], 1, size, size)
    result = writer.emit("Conv", value, weights, group=shape[1], pads=[size // 2] * 4)
    return _normalized(writer, result, shape)


def _grouped(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    groups = next(count for count in (4, 3, 2, 1) if shape[1] % count == 0)
    outputs = groups * int(writer.random.choice([1, 3, 8]))
    weights = writer.weight(outputs, shape[1] // groups, 3, 3)
    result = writer.emit("Conv", value, weights, group=groups, pads=[1] * 4)
    return _normalized(writer, result, [shape[0], outputs, *shape[2:]])


def _normalized(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    """Batch normalization and an activation, each or not."""
    random = writer.random
    if random.integers(2):
        channels = shape[1]
        parameters = [writer.weight(channels, low=-1.0) for _ in range(3)] + [writer.weight(channels, low=0.5)]
        value = writer.emit("BatchNormalization", value, *parameters)
    kind = str(random.choice(["", "Relu", "Sigmoid", "HardSigmoid", "swish", "affine"]))
    if kind == "swish":
        value = writer.emit("Mul", value, writer.emit("Sigmoid", value))
    elif kind == "affine":
        value = writer.emit("Add", writer.emit("Mul", value, writer.weight(1)), writer.weight(shape[1], 1, 1))
    elif kind:
        value = writer.emit(kind, value)
    return value, shape


def _residual(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    weights = writer.weight(shape[1], shape[1], 3, 3)
    result = writer.emit("Conv", value, weights, pads=[1] * 4)
    return writer.emit("Relu", writer.emit("Add", result, value)), shape


def _squeeze_and_excite(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    gate = writer.emit("GlobalAveragePool", value)
    gate = writer.emit("Relu", writer.emit("Conv", gate, writer.weight(5, shape[1], 1, 1)))
    gate = writer.emit("Sigmoid", writer.emit("Conv", gate, writer.weight(shape[1], 5, 1, 1), writer.weight(shape[1])))
    return writer.emit("Mul", value, gate), shape


def _concat(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    outputs = int(writer.random.choice(ODD_CHANNELS))
    other = writer.emit("Conv", value, writer.weight(outputs, shape[1], 1, 1))
    return writer.emit("Concat", value, other, axis=1), [shape[0], shape[1] + outputs, *shape[2:]]


def _pool(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    if min(shape[2:]) < 3:
        return value, shape
    kind = str(writer.random.choice(["MaxPool", "AveragePool"]))
    result = writer.emit(kind, value, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    return result, [shape[0], shape[1], *[(extent - 1) // 2 + 1 for extent in shape[2:]]]


def _transpose(writer: ModelWriter, value: str, shape: list[int]) -> tuple[str, list[int]]:
    """There and back, with something in between that wants the plain layout."""
    moved = writer.emit("Transpose", value, perm=[0, 2, 3, 1])
    scaled = writer.emit("Mul", moved, writer.weight(shape[1], low=0.5))
    return writer.emit("Transpose", scaled, perm=[0, 3, 1, 2]), shape


_BLOCKS = (
    _convolution,
    _convolution,
    _depthwise,
    _grouped,
    _residual,
    _squeeze_and_excite,
    _concat,
    _pool,
    _transpose,
)


def random_transformer(seed: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """One or two attention blocks with symbolic batch and length, and an input."""
    writer = ModelWriter(seed)
    random = writer.random
    heads, head = int(random.choice([1, 2, 3, 4])), int(random.choice([4, 8, 15, 16]))
    width = heads * head
    batch, length = (int(extent) for extent in random.integers(1, 12, 2))
    value = "tokens"
    for _ in range(int(random.integers(1, 3))):
        value = _attention(writer, value, heads, head)
        value = _feed_forward(writer, value, width)
    tokens = random.standard_normal((batch, length, width)).astype(np.float32)
    return writer.model({"tokens": ["N", "L", width]}, value), {"tokens": tokens}


def _attention(writer: ModelWriter, value: str, heads: int, head: int) -> str:
    width = heads * head
    shape = writer.constant(np.array([0, -1, heads, head], np.int64))

    def project(perm: list[int]) -> str:
        product = writer.emit("MatMul", value, writer.weight(width, width))
        split = writer.emit("Reshape", writer.emit("Add", product, writer.weight(width)), shape)
        return writer.emit("Transpose", split, perm=perm)

    query, key, content = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
    scale = writer.constant(np.float32(np.sqrt(head)))
    scores = writer.emit("Softmax", writer.emit("Div", writer.emit("MatMul", query, key), scale), axis=-1)
    mixed = writer.emit("Transpose", writer.emit("MatMul", scores, content), perm=[0, 2, 1, 3])
    joined = writer.emit("Reshape", mixed, writer.constant(np.array([0, -1, width], np.int64)))
    projected = writer.emit("MatMul", joined, writer.weight(width, width))
    return _layer_norm(writer, writer.emit("Add", projected, value), width)


def _feed_forward(writer: ModelWriter, value: str, width: int) -> str:
    hidden = int(writer.random.choice([7, 32, 50]))
    inner = writer.emit("Add", writer.weight(hidden), writer.emit("MatMul", value, writer.weight(width, hidden)))
    root = writer.constant(np.float32(np.sqrt(2)))
    erf = writer.emit("Add", writer.emit("Erf", writer.emit("Div", inner, root)), writer.constant(np.float32(1)))
    gelu = writer.emit("Mul", writer.emit("Mul", inner, erf), writer.constant(np.float32(0.5)))
    outer = writer.emit("MatMul", gelu, writer.weight(hidden, width))
    return _layer_norm(writer, writer.emit("Add", outer, value), width)


def _layer_norm(writer: ModelWriter, value: str, width: int) -> str:
    """As one operator, or spelled out."""
    scale, bias = writer.weight(width, low=0.5), writer.weight(width)
    if writer.random.integers(2):
        return writer.emit("LayerNormalization", value, scale, bias)
    centred = writer.emit("Sub", value, writer.emit("ReduceMean", value, axes=[-1]))
    square = writer.emit("Pow", centred, writer.constant(np.float32(2)))
    variance = writer.emit("ReduceMean", square, axes=[-1])
    deviation = writer.emit("Sqrt", writer.emit("Add", variance, writer.constant(np.float32(1e-5))))
    normal = writer.emit("Div", centred, deviation)
    return writer.emit("Add", writer.emit("Mul", normal, scale), bias)
