"""MatMul, Gemm."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import Gemm, MatMul


@imports("MatMul")
def import_matmul(node: OnnxNode) -> Value:
    return node.emit(MatMul(), *node.operands)


@imports("Gemm")
def import_gemm(node: OnnxNode) -> Value:
    operator = Gemm(
        node.get("alpha", 1.0), node.get("beta", 1.0), bool(node.get("transA", 0)), bool(node.get("transB", 0))
    )
    return node.emit(operator, *node.operands)
