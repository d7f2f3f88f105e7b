"""BERT-base (Devlin et al. 2018): embeddings, then transformer blocks that normalize after each sum."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from networks.writer import NetworkWriter

WIDTH, DEPTH, HEADS = 768, 12, 12
VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
EXPANSION = 4
LENGTH = 128
MASKED = -10000.0


def build(
    seed: int = 0, width: int = WIDTH, depth: int = DEPTH, heads: int = HEADS, length: int = LENGTH
) -> onnx.ModelProto:
    """input_ids, attention_mask and token_type_ids [1, length] in; hidden states [1, length, width] out."""
    write = NetworkWriter("bert", seed)
    words = write.node("Gather", write.normal(VOCABULARY, width, deviation=0.5), "input_ids")
    types = write.node("Gather", write.normal(TYPES, width, deviation=0.1), "token_type_ids")
    positions = write.parameter(np.arange(length, dtype=np.int64)[None])
    places = write.node("Gather", write.normal(POSITIONS, width, deviation=0.1), positions)
    x = write.node("Add", write.node("Add", words, types), places)
    x = write.layer_normalization(x, width, epsilon=1e-12)
    open_mask = write.node(
        "Cast", write.node("Unsqueeze", "attention_mask", write.integers(1, 2)), to=TensorProto.FLOAT
    )
    mask = write.node("Mul", write.node("Sub", write.constant(1.0), open_mask), write.constant(MASKED))
    for _ in range(depth):
        attended = write.self_attention(x, width, heads, length, mask)
        x = write.layer_normalization(write.node("Add", attended, x), width, epsilon=1e-12)
        hidden = write.gelu(write.linear(x, width, EXPANSION * width))
        hidden = write.linear(hidden, EXPANSION * width, width, gain=0.5)
        x = write.layer_normalization(write.node("Add", hidden, x), width, epsilon=1e-12)
    tokens = (TensorProto.INT64, (1, length))
    return write.model(
        {"input_ids": tokens, "attention_mask": tokens, "token_type_ids": tokens},
        {"last_hidden_state": (x, TensorProto.FLOAT, (1, length, width))},
    )
