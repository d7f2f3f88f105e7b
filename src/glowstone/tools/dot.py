"""A graph in the DOT language of Graphviz.

In: a graph. Out: text, the same for the same graph. Constants are lines in the boxes of their users, not boxes.
"""

from __future__ import annotations

import json
from typing import Final

from glowstone.graph import Graph, Node, Value
from glowstone.graph.printer import print_operator
from glowstone.ops import Constant

_LONGEST_LINE: Final = 60
_HEAD: Final = (
    "  rankdir=TB;",
    '  node [shape=box, style="rounded,filled", fillcolor="#eef3fa", fontname="Helvetica", fontsize=10];',
    '  edge [fontname="Helvetica", fontsize=9, color="#555555"];',
)
_PORT_STYLE: Final = 'shape=ellipse, fillcolor="#fdf1d8"'


def graph_to_dot(graph: Graph) -> str:
    """The graph as a digraph, with an edge for every operand that is no constant, labelled with its type."""
    names: dict[Value, str] = {}
    lines = [f"digraph {json.dumps(graph.name or 'graph')} {{", *_HEAD]
    for number, value in enumerate(graph.inputs):
        names[value] = f"input{number}"
        lines.append(f"  input{number} [label={_label([value.name])}, {_PORT_STYLE}];")
    drawn = [node for node in graph.nodes if not isinstance(node.operator, Constant)]
    for number, node in enumerate(drawn):
        names.update(dict.fromkeys(node.results, f"node{number}"))
        lines.append(f"  node{number} [label={_label(_node_lines(node))}];")
        lines.extend(
            _edge(names[operand], f"node{number}", operand) for operand in node.present_operands() if operand in names
        )
    for number, (name, value) in enumerate(zip(graph.output_names, graph.outputs, strict=True)):
        lines.append(f"  output{number} [label={_label([name])}, {_PORT_STYLE}];")
        if value in names:
            lines.append(_edge(names[value], f"output{number}", value))
    return "\n".join([*lines, "}", ""])


def _edge(source: str, target: str, value: Value) -> str:
    return f"  {source} -> {target} [label={_label([str(value.type)])}];"


def _node_lines(node: Node) -> list[str]:
    """The operator, the ONNX names, and the types of constant operands."""
    operator = print_operator(node.operator)
    constants = [
        str(operand.type)
        for operand in node.present_operands()
        if operand.node is not None and isinstance(operand.node.operator, Constant)
    ]
    return [operator, ", ".join(node.names), *constants]


def _label(lines: list[str]) -> str:
    shortened = [line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..." for line in lines if line]
    return json.dumps("\n".join(shortened), ensure_ascii=False)
