"""A decoder of language of GPT-2's form (Radford et al. 2019): pre-normalized blocks, causal mask, tanh GELU."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from networks.writer import OPSET, NetworkWriter

POSITIONS = 256
EXPANSION = 4


def build(
    layers: int = 12, width: int = 768, heads: int = 12, vocabulary: int = 8192, seed: int = 0, opset: int = OPSET
) -> onnx.ModelProto:
    """input_ids i64 [batch, length] to logits [batch, length, vocabulary]; length up to `POSITIONS`."""
    write = NetworkWriter("decoder", seed, opset)
    batch, length = write.extent("input_ids", 0), write.extent("input_ids", 1)
    words = write.normal(vocabulary, width, deviation=0.5)
    places = write.node("Range", write.constant(0, np.int64), length, write.constant(1, np.int64))
    positions = write.node("Gather", write.normal(POSITIONS, width, deviation=0.2), write.unsqueeze(places, 0))
    x = write.node("Add", write.node("Gather", words, "input_ids"), positions)
    mask = _causal_mask(write, length)
    for _ in range(layers):
        normal = write.layer_normalization(x, width)
        x = write.node("Add", _attention(write, normal, width, heads, (batch, length), mask), x)
        hidden = _conv1d(write, write.layer_normalization(x, width), width, EXPANSION * width, (batch, length))
        x = write.node("Add", x, _conv1d(write, _gelu_new(write, hidden), EXPANSION * width, width, (batch, length)))
    x = write.layer_normalization(x, width)
    head = write.normal(width, vocabulary, deviation=width**-0.5)
    logits = write.node("MatMul", x, head)
    return write.model(
        {"input_ids": (TensorProto.INT64, ("batch", "length"))},
        {"logits": (logits, TensorProto.FLOAT, ("batch", "length", vocabulary))},
    )


def _causal_mask(write: NetworkWriter, length: str) -> str:
    """bool [1, 1, length, length], cut from a triangle that is a buffer of the model."""
    triangle = write.parameter(np.tril(np.ones((1, 1, POSITIONS, POSITIONS), bool)))
    for axis in (2, 3):
        bounds = [write.integers(0), write.unsqueeze(length, 0), write.integers(axis), write.integers(1)]
        triangle = write.node("Slice", triangle, *bounds)
    return triangle


def _conv1d(write: NetworkWriter, x: str, inner: int, outer: int, leading: tuple[str, str]) -> str:
    """The linear layer of GPT-2: a Gemm on a matrix of all tokens."""
    weights = write.normal(inner, outer, deviation=inner**-0.5)
    rows = write.node("Gemm", write.reshape(x, -1, inner), weights, write.normal(outer, deviation=0.1))
    return write.reshape(rows, *leading, outer)


def _attention(write: NetworkWriter, x: str, width: int, heads: int, leading: tuple[str, str], mask: str) -> str:
    size = width // heads
    parts = write.split(_conv1d(write, x, width, 3 * width, leading), [width] * 3, axis=2)
    query, key, value = (write.reshape(part, *leading, heads, size) for part in parts)
    query, value = (write.node("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, value))
    scores = write.node("MatMul", query, write.node("Transpose", key, perm=[0, 2, 3, 1]))
    scores = write.node("Div", scores, write.constant(size**0.5))
    scores = write.node("Where", mask, scores, write.constant(np.finfo(np.float32).min))
    weights = write.node("Softmax", scores, axis=-1)
    mixed = write.node("Transpose", write.node("MatMul", weights, value), perm=[0, 2, 1, 3])
    return _conv1d(write, write.reshape(mixed, *leading, width), width, width, leading)


def _gelu_new(write: NetworkWriter, x: str) -> str:
    """The tanh form, spelled out."""
    cube = write.node("Mul", write.node("Pow", x, write.constant(3.0)), write.constant(0.044715))
    curve = write.node("Tanh", write.node("Mul", write.node("Add", x, cube), write.constant((2 / np.pi) ** 0.5)))
    half = write.node("Mul", x, write.constant(0.5))
    return write.node("Mul", half, write.node("Add", curve, write.constant(1.0)))
