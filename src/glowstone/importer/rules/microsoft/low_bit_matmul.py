"""MatMulNBits: products with weights of few bits in blocks, which stay packed."""

from __future__ import annotations

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.domain import microsoft, refuse_operands, required_integer, with_bias
from glowstone.ops import BitShift, BitwiseAnd, LowBitMatMul
from glowstone.ops.constant import constant, scalar
from glowstone.ops.low_bit_matmul import blocks_of
from glowstone.ops.shape_arithmetic import extents, reshaped, sliced, stretched
from glowstone.ops.widening import converted
from glowstone.types import ElementType

U8, F32 = ElementType.U8, ElementType.F32
BYTE = 8
DEFAULT_BITS = 4
A, WEIGHTS, SCALES, ZERO_POINTS, GROUPS, BIAS = range(6)


@microsoft("MatMulNBits")
def import_matmul_n_bits(node: OnnxNode) -> Value:
    """A times the matrix [K, N] that the packed weights mean, plus a bias.

    Zero points are numbers of the weights' bits, packed as these are, or floats; the middle where they are left out.
    Whatever `accuracy_level` allows, A is not rounded to fewer bits.
    """
    refuse_operands(node, {GROUPS: "g_idx"})
    if node.integer("weight_prepacked", 0):
        raise node.refuse("weight_prepacked", 0)
    builder, a = node.builder, node.operand(A)
    depth, columns = required_integer(node, "K"), required_integer(node, "N")
    operator = LowBitMatMul(node.integer("bits", DEFAULT_BITS), required_integer(node, "block_size"))
    if not a.rank or a.shape[-1] != depth:
        raise ShapeError("A does not fit attribute K", expected=f"{depth} on the last axis", found=str(a.type))
    operator.check_form()
    shape = (columns, blocks_of(depth, operator.block))
    rows = reshaped(builder, converted(builder, a, F32), -1, depth)
    scales = reshaped(builder, converted(builder, node.operand(SCALES), F32), shape)
    product = node.emit(operator, rows, node.operand(WEIGHTS), scales, _zero_points(node, operator.bits, shape))
    y = reshaped(builder, product, extents(builder, a, 0, a.rank - 1), columns)
    bias = node.optional(BIAS)
    wide = None if bias is None else converted(builder, bias, F32)
    return converted(builder, with_bias(node, y, wide), a.element)


def _zero_points(node: OnnxNode, bits: int, shape: tuple[int, int]) -> Value:
    """Zero points [N, blocks] as floats; a constant where they are constants, which holds one float for a block."""
    builder, given = node.builder, node.optional(ZERO_POINTS)
    if given is None:
        return stretched(builder, scalar(builder, 2.0 ** (bits - 1), F32), shape)
    if given.element is not U8:
        return reshaped(builder, converted(builder, given, F32), shape)
    columns, blocks = shape
    per_byte = BYTE // bits
    packed = reshaped(builder, given, (columns, blocks_of(blocks, per_byte), 1))
    shifts = constant(builder, np.arange(0, BYTE, bits, dtype=np.uint8))
    parts = node.emit(BitwiseAnd(), node.emit(BitShift(left=False), packed, shifts), scalar(builder, 2**bits - 1, U8))
    numbers = reshaped(builder, parts, (columns, blocks_of(blocks, per_byte) * per_byte))
    return converted(builder, sliced(builder, numbers, 1, 0, blocks), F32)
