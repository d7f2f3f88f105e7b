"""Small operands and attributes of operators of ONNX Runtime's domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from helpers.microsoft import Array


def _ones(*shape: int, dtype: type = np.float32) -> Array:
    return np.ones(shape, dtype)


def _bytes(*shape: int) -> Array:
    return np.ones(shape, np.uint8)


X = _ones(2, 3, 8)
ONE, BYTE = np.array(0.5, np.float32), np.array(3, np.uint8)
CASES: dict[str, tuple[list[Array | None], dict[str, Any]]] = {
    "FusedConv": (
        [_ones(1, 2, 5, 5), _ones(3, 2, 3, 3), _ones(3)], {"activation": "Clip", "activation_params": [0.0, 1.0]},
    ),
    "FusedGemm": ([_ones(2, 3), _ones(3, 4), _ones(4)], {"activation": "Relu", "alpha": 0.5}),
    "FusedMatMul": ([_ones(2, 3, 4), _ones(2, 4, 5)], {"transA": 0, "alpha": 2.0}),
    "SkipLayerNormalization": ([X, X, _ones(8), _ones(8), _ones(8)], {"epsilon": 1e-5}),
    "EmbedLayerNormalization": (
        [_ones(2, 3, dtype=np.int32), None, _ones(9, 8), _ones(9, 8), None, _ones(8), _ones(8)], {"epsilon": 1e-5},
    ),
    "Attention": ([X, _ones(8, 24), _ones(24), _ones(2, 3, dtype=np.int32)], {"num_heads": 2, "unidirectional": 1}),
    "MultiHeadAttention": ([X, X, X, _ones(24), _ones(2, 3, dtype=np.int32)], {"num_heads": 2, "scale": 0.5}),
    "GroupQueryAttention": (
        [X, X[..., :4], X[..., :4], None, None, np.array([2, 2], np.int32), np.array(3, np.int32)],
        {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 2},
    ),
    "RotaryEmbedding": ([X, _ones(1, dtype=np.int64), _ones(9, 2), _ones(9, 2)], {"interleaved": 1}),
    "QLinearAdd": ([_bytes(2, 3), ONE, BYTE, _bytes(3), ONE, BYTE, ONE, BYTE], {}),
    "QLinearConcat": ([ONE, BYTE, _bytes(2, 3), ONE, BYTE, _bytes(2, 1), ONE, BYTE], {"axis": 1}),
    "QLinearSoftmax": ([_bytes(2, 3), ONE, BYTE, ONE, BYTE], {"opset": 13, "axis": 1}),
    "QLinearAveragePool": ([_bytes(1, 2, 5, 5), ONE, BYTE, ONE, BYTE], {"kernel_shape": [2, 2], "channels_last": 0}),
    "QGemm": ([_bytes(2, 3), ONE, BYTE, _bytes(3, 4), ONE, BYTE, _ones(4, dtype=np.int32), ONE, BYTE], {"alpha": 2.0}),
    "QAttention": ([_bytes(2, 3, 8), _bytes(8, 24), _ones(24), ONE, ONE, None, BYTE, BYTE], {"num_heads": 2}),
    "MatMulIntegerToFloat": ([_bytes(2, 3), _bytes(3, 4), ONE, ONE, BYTE, BYTE, _ones(4)], {}),
    "DynamicQuantizeMatMul": ([_ones(2, 3), _bytes(3, 4), ONE, BYTE, _ones(4)], {}),
    "DynamicQuantizeLSTM": (
        [_ones(2, 1, 3), _bytes(1, 3, 8), _bytes(1, 2, 8), *[None] * 5, _ones(1), _bytes(1), _ones(1), _bytes(1)],
        {"hidden_size": 2, "direction": "forward"},
    ),
    "MatMulNBits": ([_ones(2, 32), _bytes(4, 1, 16), _ones(4, 1), _bytes(4, 1)], {"K": 32, "N": 4, "block_size": 32}),
}  # fmt: skip
