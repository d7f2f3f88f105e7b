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
    operator = Gemm(node.number("alpha", 1.0), node.number("beta", 1.0), node.flag("transA"), node.flag("transB"))
    return node.emit(operator, *node.operands)
