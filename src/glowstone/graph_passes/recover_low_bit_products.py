"""Recovers products with weights of few bits, which stay packed, from MatMul of weights that constants dequantize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Node, Value, apply_patterns, rewrite
from glowstone.graph_passes.matching import operand
from glowstone.ops import DequantizeLinear, LowBitMatMul, MatMul
from glowstone.ops.constant import constant, constant_array
from glowstone.ops.low_bit_matmul import SHORTEST_BLOCK, blocks_of
from glowstone.ops.shape_arithmetic import extents, reshaped
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

BYTE = 8
WEIGHTS = frozenset({ElementType.I4, ElementType.U4, ElementType.I2, ElementType.U2})
F32 = ElementType.F32
SMALLEST = 2**14
"""Weights of which the memory does not matter."""
USUAL_BLOCK = 32
"""Length of a block where all weights of a column have one scale."""


def recover_low_bit_products(graph: Graph) -> bool:
    """Apply all patterns of this file."""
    return apply_patterns(graph, (recover_product,))


@dataclass(frozen=True)
class _Weights:
    """A matrix [K, N] as codes of unsigned numbers, with scales and zero points [blocks, N]."""

    codes: Array
    bits: int
    block: int
    scales: Array
    zero_points: Array


@rewrite(MatMul)
def recover_product(builder: Builder, node: Node) -> Value | None:
    a, wide = node.operands
    if a is None or wide is None or a.element is not F32 or a.rank < 2:
        return None
    weights = _weights(wide)
    if weights is None:
        return None
    depth, columns = weights.codes.shape
    operands = (packed_weights(weights.codes, weights.bits, weights.block), weights.scales.T, weights.zero_points.T)
    constants = [constant(builder, np.ascontiguousarray(array)) for array in operands]
    rows = reshaped(builder, a, -1, depth)
    product = builder.emit(LowBitMatMul(weights.bits, weights.block), rows, *constants)
    return reshaped(builder, product, extents(builder, a, 0, a.rank - 1), columns)


def _weights(wide: Value) -> _Weights | None:
    """What a value dequantizes, where all of it is constant and the form is one that the product takes."""
    if not isinstance(wide.operator, DequantizeLinear) or wide.element is not F32 or wide.rank != 2:
        return None
    x, scale = operand(wide, 0), constant_array(operand(wide, 1))
    array, zero_point = constant_array(x), operand(wide, 2)
    if x is None or array is None or scale is None or x.element not in WEIGHTS or array.size < SMALLEST:
        return None
    zeros = constant_array(zero_point)
    block = _block(wide.operator, scale)
    if block is None or (zero_point is not None and zeros is None):
        return None
    bits, shape = x.element.bits, (blocks_of(array.shape[0], block), array.shape[1])
    # two's complement plus half the range counts from 0 on
    half = 1 << (bits - 1) if x.element.is_signed else 0
    codes = (array.view(np.uint8) + np.uint8(half)) & np.uint8((1 << bits) - 1)
    offsets: Any = half + (np.zeros(()) if zeros is None else zeros.astype(np.float64))
    return _Weights(np.asarray(codes), bits, block, _spread(scale, shape), _spread(offsets, shape))


def _spread(parameter: Array, shape: tuple[int, int]) -> Array:
    """Numbers for all, per column or per block and column, for every block and column."""
    number = parameter.reshape(()) if parameter.size == 1 else parameter
    return np.broadcast_to(number.astype(np.float32), shape)


def _block(operator: DequantizeLinear, scale: Array) -> int | None:
    """Weights of a column that share a scale; None where the scales are along rows or of another length."""
    if operator.block:
        is_fit = operator.axis % 2 == 0 and operator.block >= SHORTEST_BLOCK
        return operator.block if is_fit and operator.block & (operator.block - 1) == 0 else None
    return USUAL_BLOCK if scale.size == 1 or operator.axis % 2 == 1 else None


def packed_weights(codes: Array, bits: int, block: int) -> Array:
    """Codes [K, N] as bytes [N, blocks, block * bits / 8], the first code in the lowest bits; zero behind K."""
    depth, columns = codes.shape
    blocks, parts = blocks_of(depth, block), BYTE // bits
    padded = np.zeros((columns, blocks * block), np.uint8)
    padded[:, :depth] = codes.T
    apart = padded.reshape(columns, blocks, block // parts, parts) << np.arange(0, BYTE, bits, dtype=np.uint8)
    return np.asarray(np.bitwise_or.reduce(apart, axis=-1))
