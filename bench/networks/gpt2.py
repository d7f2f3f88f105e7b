"""One decoding step of GPT-2 (Radford et al. 2019): a token and the key-value cache in, logits and new cache out."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from networks.writer import NetworkWriter

WIDTH, DEPTH, HEADS = 768, 12, 12
VOCABULARY, POSITIONS = 50257, 1024
EXPANSION = 4
PAST = 127


def build(
    seed: int = 0,
    width: int = WIDTH,
    depth: int = DEPTH,
    heads: int = HEADS,
    past: int = PAST,
    vocabulary: int = VOCABULARY,
) -> onnx.ModelProto:
    """token and position i64 [1, 1], past_key_* and past_value_* [1, heads, past, size] in."""
    write = NetworkWriter("gpt2", seed)
    size = width // heads
    embedding = write.normal(vocabulary, width, deviation=0.5)
    positions = write.node("Gather", write.normal(POSITIONS, width, deviation=0.1), "position")
    x = write.node("Add", write.node("Gather", embedding, "token"), positions)
    inputs: dict[str, tuple[int, tuple[int, ...]]] = {
        "token": (TensorProto.INT64, (1, 1)),
        "position": (TensorProto.INT64, (1, 1)),
    }
    outputs: dict[str, tuple[str, int, tuple[int, ...]]] = {}
    for layer in range(depth):
        joined = write.linear(write.layer_normalization(x, width, epsilon=1e-5), width, 3 * width)
        query, key, value = write.nodes("Split", 3, joined, write.integers(width, width, width), axis=-1)
        query, key, value = (write.heads(part, heads, size, 1) for part in (query, key, value))
        for kind, new in (("key", key), ("value", value)):
            inputs[f"past_{kind}_{layer}"] = (TensorProto.FLOAT, (1, heads, past, size))
            whole = write.node("Concat", f"past_{kind}_{layer}", new, axis=2)
            outputs[f"present_{kind}_{layer}"] = (whole, TensorProto.FLOAT, (1, heads, past + 1, size))
        keys, values = outputs[f"present_key_{layer}"][0], outputs[f"present_value_{layer}"][0]
        scores = write.node("MatMul", query, write.node("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = write.node("Div", scores, write.constant(size**0.5))
        mixed = write.node("MatMul", write.node("Softmax", scores, axis=-1), values)
        merged = write.node("Reshape", write.node("Transpose", mixed, perm=[0, 2, 1, 3]), write.integers(0, 1, width))
        x = write.node("Add", x, write.linear(merged, width, width, gain=0.5))
        hidden = write.linear(write.layer_normalization(x, width, epsilon=1e-5), width, EXPANSION * width)
        x = write.node("Add", x, write.linear(_gelu_new(write, hidden), EXPANSION * width, width, gain=0.5))
    x = write.layer_normalization(x, width, epsilon=1e-5)
    logits = write.node("MatMul", x, write.normal(width, vocabulary, deviation=width**-0.5))
    return write.model(inputs, {"logits": (logits, TensorProto.FLOAT, (1, 1, vocabulary)), **outputs})


def _gelu_new(write: NetworkWriter, x: str) -> str:
    """The tanh form of GELU, spelled out."""
    cube = write.node("Pow", x, write.constant(3.0))
    inner = write.node("Add", x, write.node("Mul", cube, write.constant(0.044715)))
    curve = write.node("Tanh", write.node("Mul", inner, write.constant((2 / 3.141592653589793) ** 0.5)))
    return write.node("Mul", write.node("Mul", x, write.constant(0.5)), write.node("Add", curve, write.constant(1.0)))
