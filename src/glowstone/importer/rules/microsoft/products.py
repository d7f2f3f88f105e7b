"""Products with more around them: FusedConv, FusedGemm, FusedMatMul, TransposeMatMul."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.importer.rules.convolution import window_of_weights
from glowstone.importer.rules.linear import import_gemm
from glowstone.importer.rules.microsoft.activation import activated
from glowstone.importer.rules.microsoft.domain import microsoft, with_bias
from glowstone.ops import Conv, MatMul, Mul, Transpose
from glowstone.ops.constant import scalar


@microsoft("FusedConv")
def import_fused_conv(node: OnnxNode) -> Value:
    """activation(Conv(X, W, B) + Z)."""
    window = window_of_weights(node, node.operand(1))
    operator = Conv(window.strides, window.dilations, window.pads, node.integer("group", 1), window.padding)
    product = node.emit(operator, node.operand(0), node.operand(1), node.optional(2))
    return activated(node, with_bias(node, product, node.optional(3)), node.number_list("activation_params") or ())


@microsoft("FusedGemm")
def import_fused_gemm(node: OnnxNode) -> Value:
    """activation(Gemm(A, B, C))."""
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    alpha, beta, gamma = (node.number(name, 0.0) if name in node.attributes else None for name in names)
    second = gamma if node.text("activation", "") == "Selu" else beta
    return activated(node, import_gemm(node), (alpha, second))


@microsoft("FusedMatMul")
@microsoft("TransposeMatMul")
def import_fused_matmul(node: OnnxNode) -> Value:
    """alpha times the product of A and B, each transposed where asked."""
    left, right = (
        _transposed(node, node.operand(index), node.flag(f"trans{name}"), node.flag(f"transBatch{name}"))
        for index, name in enumerate("AB")
    )
    product = node.emit(MatMul(), left, right)
    alpha = node.number("alpha", 1.0)
    return product if alpha == 1.0 else node.emit(Mul(), product, scalar(node.builder, alpha, product.element))


def _transposed(node: OnnxNode, x: Value, swaps_last: bool, moves_first: bool) -> Value:
    """x with its first axis moved before its last one, then with its last two axes swapped; a vector as it is."""
    if x.rank < 2 or not (swaps_last or moves_first):
        return x
    axes = list(range(x.rank))
    if moves_first:
        axes.insert(x.rank - 2, axes.pop(0))
    if swaps_last:
        axes[-2:] = reversed(axes[-2:])
    return node.emit(Transpose(tuple(axes)), x)
