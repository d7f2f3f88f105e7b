"""Lowering: what is not legal is decomposed, again and again, and what stays illegal is refused by name."""

from __future__ import annotations

import pytest
from helpers.graph_text import check_pass, graph_of

from glowstone.errors import UnsupportedError
from glowstone.graph import Graph, Node
from glowstone.lowering import check_legal, decompose

GEMM = """
    input %a: f32[4,3] ("k", "m")
    input %b: f32[4,5] ("k", 5)
    input %c: f32[5]
    %0 = Gemm{alpha=0.5, beta=2.0, transpose_a=True}(%a, %b, %c) : f32[3,5] "gemm"
    output y = %0 ("m", 5)
    """


def decompose_all(graph: Graph) -> bool:
    return decompose(graph, lambda node: False)


def test_every_new_node_keeps_the_origin():
    check_pass(
        decompose_all,
        GEMM,
        """
        input %a: f32[4,3] ("k", "m")
        input %b: f32[4,5] ("k", 5)
        input %c: f32[5]
        %0 = Transpose{permutation=(1, 0)}(%a) : f32[3,4] "gemm"
        %1 = MatMul(%0, %b) : f32[3,5] "gemm"
        %2 = Constant{tensor=f32[]{0.5}}() : f32[] "gemm"
        %3 = Mul(%1, %2) : f32[3,5] "gemm"
        %4 = Constant{tensor=f32[]{2.0}}() : f32[] "gemm"
        %5 = Mul(%c, %4) : f32[5] "gemm"
        %6 = Add(%3, %5) : f32[3,5] "gemm"
        output y = %6 ("m", 5)
        """,
    )


def test_decompositions_are_decomposed():
    check_pass(
        decompose_all,
        """
        input %x: f32[2,3,4,5]
        %0 = GlobalAveragePool(%x) : f32[2,3,1,1]
        %1 = ReduceMean{axes=(0, 2)}(%0) : f32[1,3,1,1]
        output y = %1
        """,
        """
        input %x: f32[2,3,4,5]
        %0 = ReduceMean{axes=(2, 3)}(%x) : f32[2,3,1,1]
        %1 = Transpose{permutation=(1, 3, 0, 2)}(%0) : f32[3,1,2,1]
        %2 = ReduceMean{axes=(2, 3), keep=False}(%1) : f32[3,1]
        %3 = Unsqueeze{axes=(0, 2)}(%2) : f32[1,3,1,1]
        output y = %3
        """,
    )


def test_what_is_legal_stays():
    graph = graph_of(GEMM)
    assert not decompose(graph, lambda node: node.operator.name == "Gemm")
    assert [node.operator.name for node in graph.nodes] == ["Gemm"]


def test_what_stays_illegal_is_listed_at_once():
    graph = graph_of(
        """
        input %x: f64[2]
        %0 = Exp(%x) : f64[2] "power"
        %1 = Exp(%0) : f64[2] "power of it"
        %2 = Softmax(%1) : f64[2] "soft"
        %3 = Add(%2, %x) : f64[2]
        output y = %3
        """
    )

    def is_legal(node: Node) -> bool:
        return node.operator.name == "Add"

    decompose(graph, is_legal)
    with pytest.raises(UnsupportedError, match=r"backend toy does not support: Exp\(f64\), Softmax\(f64\)") as caught:
        check_legal(graph, is_legal, "toy")
    assert caught.value.node == "power; soft"
    assert caught.value.operator == "Exp(f64), Softmax(f64)"
