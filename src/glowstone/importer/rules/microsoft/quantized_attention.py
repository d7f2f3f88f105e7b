"""Attention and embeddings with quantized weights: QAttention, QEmbedLayerNormalization."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.microsoft.attention import projected_attention
from glowstone.importer.rules.microsoft.domain import microsoft, with_bias
from glowstone.importer.rules.microsoft.normalization import embedded
from glowstone.importer.rules.microsoft.quantized import per_tensor
from glowstone.importer.rules.microsoft.quantized_products import scaled
from glowstone.ops import DequantizeLinear, Gather, MatMulInteger

SCALES, ZERO_POINTS = 8, 13
"""Operands of QEmbedLayerNormalization: the first of five each, in the order of what they belong to."""
FIRST_QUANTIZED = 2


@microsoft("QAttention")
def import_quantized_attention(node: OnnxNode) -> Value | tuple[Value, ...]:
    """Attention whose projections are products of quantized numbers.

    Operands are x, W, the bias, the scales of x and W, the mask, the zero points of x and W, and the past.
    """
    if node.flag("past_present_share_buffer"):
        raise node.refuse("past_present_share_buffer", 0)
    zero_points = (per_tensor(node, node.optional(index)) for index in (6, 7))
    sums = node.emit(MatMulInteger(), node.operand(0), node.operand(1), *zero_points)
    projected = with_bias(node, scaled(node, sums, node.operand(3), node.operand(4)), node.optional(2))
    return projected_attention(node, projected, node.optional(8), (node.optional(5), None, None))


@microsoft("QEmbedLayerNormalization")
def import_quantized_embed_layer_normalization(node: OnnxNode) -> tuple[Value, ...]:
    """EmbedLayerNormalization of quantized tables, of which only the rows looked up become floats."""

    def meant(x: Value, index: int) -> Value:
        scale, zero_point = (node.operand(first + index - FIRST_QUANTIZED) for first in (SCALES, ZERO_POINTS))
        return node.emit(DequantizeLinear(), x, per_tensor(node, scale), per_tensor(node, zero_point))

    def look_up(table: int, places: Value) -> Value:
        return meant(node.emit(Gather(0), node.operand(table), places), table)

    scale, bias = (meant(node.operand(index), index) for index in (5, 6))
    y, count, _ = embedded(node, look_up, (scale, bias), node.optional(7), None)
    return y, count
