"""Operands and attributes of valid nodes, changed at random: refused with an error of Glowstone's, or imported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.microsoft import Array, node_model

import glowstone
from glowstone.importer import import_model, open_model

MUTANTS = 150
ELEMENTS = (np.float32, np.float16, np.uint8, np.int8, np.int32, np.int64, np.bool_)
ATTRIBUTES: tuple[object, ...] = (-1, 0, 3, 77, 0.5, "x", [1, 2])


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


def mutated(array: Array | None, random: np.random.Generator) -> Array | None:
    """Another shape or element type, or left out; one that was left out gets a value."""
    if array is None:
        return np.ones(random.integers(0, 4, random.integers(0, 5)), np.float32)
    choice = random.integers(6)
    if choice == 0:
        return None
    if choice == 1 and array.ndim:
        return array[tuple(slice(0, random.integers(0, extent + 1)) for extent in array.shape)]
    if choice == 2:
        return array[None]
    if choice == 3:
        return array.astype(ELEMENTS[random.integers(len(ELEMENTS))])
    if choice == 4 and array.ndim:
        return np.concatenate([array, array], random.integers(array.ndim))
    return array.reshape(-1)


@pytest.mark.parametrize("kind", CASES)
def test_mutants(kind):
    random = np.random.default_rng(sorted(CASES).index(kind))
    imported = refused = 0
    for _ in range(MUTANTS):
        operands, attributes = list(CASES[kind][0]), dict(CASES[kind][1])
        for _ in range(random.integers(0, 3)):
            place = random.integers(len(operands))
            operands[place] = mutated(operands[place], random)
        if attributes and random.uniform() < 0.3:
            attributes[list(attributes)[random.integers(len(attributes))]] = ATTRIBUTES[
                random.integers(len(ATTRIBUTES))
            ]
        if random.uniform() < 0.1:
            operands = operands[: random.integers(len(operands))]
        fixed = [place for place in range(len(operands)) if random.uniform() < 0.5]
        model = node_model(kind, [operands], attributes, fixed=fixed)
        try:
            import_model(open_model(model))
            imported += 1
        except glowstone.GlowstoneError:
            refused += 1
    assert imported
    assert refused
