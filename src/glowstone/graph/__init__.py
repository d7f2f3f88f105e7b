"""The high-level representation: a typed data-flow graph."""

from glowstone.graph.builder import Builder, rebuild
from glowstone.graph.evaluator import evaluate_graph
from glowstone.graph.graph import Graph, Node, Value
from glowstone.graph.operator import (
    KNOWN_ELEMENTS_LIMIT,
    OPERATORS,
    ErrorSample,
    Operand,
    Operator,
    Sample,
    as_tuple,
    operator,
)
from glowstone.graph.parser import parse_graph
from glowstone.graph.printer import GRAPH_TEXT_VERSION, named_tensors, print_graph
from glowstone.graph.rewriter import apply_patterns, rewrite
from glowstone.graph.tensor import Tensor
from glowstone.graph.verifier import verify_graph

__all__ = [
    "GRAPH_TEXT_VERSION",
    "KNOWN_ELEMENTS_LIMIT",
    "OPERATORS",
    "Builder",
    "ErrorSample",
    "Graph",
    "Node",
    "Operand",
    "Operator",
    "Sample",
    "Tensor",
    "Value",
    "apply_patterns",
    "as_tuple",
    "evaluate_graph",
    "named_tensors",
    "operator",
    "parse_graph",
    "print_graph",
    "rebuild",
    "rewrite",
    "verify_graph",
]
