"""Transformers as PyTorch's exporter writes them, in the patterns that optimizers look for."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from helpers.blocks import ModelWriter

HIDDEN, HEADS, WORDS, PLACES, KINDS = 16, 2, 30, 24, 2
LENGTH = 7
"""Positions of `bert`, which its position numbers fix."""


def bert(layers: int = 2) -> onnx.ModelProto:
    """ids, kinds and mask i64 [batch, 7] to y f32 [batch, 7, 16]: an encoder with GELU, masked."""
    write = ModelWriter(2)
    words = write.node("Gather", write.weights(WORDS, HIDDEN, scale=1.0), "ids", axis=0)
    kinds = write.node("Gather", write.weights(KINDS, HIDDEN, scale=1.0), "kinds", axis=0)
    numbers = write.tensor(np.arange(LENGTH)[None], np.int64)
    places = write.node("Gather", write.weights(PLACES, HIDDEN, scale=1.0), numbers, axis=0)
    x = _normalized(write, write.node("Add", write.node("Add", words, kinds), places))
    hidden = _hidden_scores(write)
    for _ in range(layers):
        attended = _linear(write, _attention(write, x, hidden))
        x = _normalized(write, write.node("Add", attended, x))
        x = _normalized(write, write.node("Add", _feed_forward(write, x), x))
    return _model(write, x, ["ids", "kinds", "mask"], ["batch", LENGTH])


def gpt(layers: int = 2) -> onnx.ModelProto:
    """ids i64 [batch, length] to y f32 [batch, length, 16]: a decoder normalized before each part, tanh GELU."""
    write = ModelWriter(3)
    x = write.node("Gather", write.weights(WORDS, HIDDEN, scale=1.0), "ids", axis=0)
    later = write.tensor(np.triu(np.full((PLACES, PLACES), -10000.0), 1)[None, None], np.float32)
    length = write.node("Unsqueeze", _extent(write, "ids", 1), write.tensor([0], np.int64))
    ends = write.node("Concat", length, length, axis=0)
    causal = write.node("Slice", later, write.tensor([0, 0], np.int64), ends, write.tensor([2, 3], np.int64))
    for _ in range(layers):
        attended = _linear(write, _attention(write, _normalized(write, x), causal))
        x = write.node("Add", x, attended)
        x = write.node("Add", x, _feed_forward(write, _normalized(write, x), tanh=True))
    return _model(write, _normalized(write, x), ["ids"], ["batch", "length"])


def _model(write: ModelWriter, y: str, inputs: list[str], shape: list[object]) -> onnx.ModelProto:
    write.nodes[-1].output[0] = "y"
    assert write.nodes[-1].name + ":0" == y
    ports = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in inputs]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape, HIDDEN])
    graph = helper.make_graph(write.nodes, "transformer", ports, [result], write.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def _extent(write: ModelWriter, x: str, axis: int) -> str:
    return write.node("Gather", write.node("Shape", x), write.tensor(axis, np.int64))


def _hidden_scores(write: ModelWriter) -> str:
    """-10000 where the mask is 0."""
    first = write.node("Unsqueeze", "mask", write.tensor([1], np.int64))
    wide = write.node("Cast", write.node("Unsqueeze", first, write.tensor([2], np.int64)), to=TensorProto.FLOAT)
    hidden = write.node("Sub", write.tensor(1, np.float32), wide)
    return write.node("Mul", hidden, write.tensor(-10000, np.float32))


def _normalized(write: ModelWriter, x: str) -> str:
    parameters = write.weights(HIDDEN), write.weights(HIDDEN)
    return write.node("LayerNormalization", x, *parameters, axis=-1, epsilon=1e-5)


def _linear(write: ModelWriter, x: str, inputs: int = HIDDEN, outputs: int = HIDDEN) -> str:
    return write.node("Add", write.node("MatMul", x, write.weights(inputs, outputs)), write.weights(outputs))


def _attention(write: ModelWriter, x: str, added: str) -> str:
    size = HIDDEN // HEADS
    apart = [0, 0, HEADS, size]
    query, key, value = (
        write.node(
            "Transpose", write.node("Reshape", _linear(write, x), write.tensor(apart, np.int64)), perm=permutation
        )
        for permutation in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = write.node("Div", write.node("MatMul", query, key), write.tensor(np.sqrt(size), np.float32))
    weights = write.node("Softmax", write.node("Add", scores, added), axis=3)
    mixed = write.node("Transpose", write.node("MatMul", weights, value), perm=[0, 2, 1, 3])
    return write.node("Reshape", mixed, write.tensor([0, 0, HIDDEN], np.int64))


def _feed_forward(write: ModelWriter, x: str, tanh: bool = False) -> str:
    hidden = _linear(write, x, HIDDEN, 2 * HIDDEN)
    active = _tanh_gelu(write, hidden) if tanh else _gelu(write, hidden)
    return _linear(write, active, 2 * HIDDEN, HIDDEN)


def _gelu(write: ModelWriter, x: str) -> str:
    error = write.node("Erf", write.node("Div", x, write.tensor(np.sqrt(2), np.float32)))
    doubled = write.node("Mul", x, write.node("Add", error, write.tensor(1, np.float32)))
    return write.node("Mul", doubled, write.tensor(0.5, np.float32))


def _tanh_gelu(write: ModelWriter, x: str) -> str:
    cube = write.node("Mul", write.node("Pow", x, write.tensor(3, np.float32)), write.tensor(0.044715, np.float32))
    inner = write.node("Mul", write.node("Add", x, cube), write.tensor(np.sqrt(2 / np.pi), np.float32))
    curve = write.node("Add", write.node("Tanh", inner), write.tensor(1, np.float32))
    return write.node("Mul", write.node("Mul", x, write.tensor(0.5, np.float32)), curve)
