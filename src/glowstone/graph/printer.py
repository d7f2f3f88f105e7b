"""The text form of graphs.

    glowstone.graph 1 "main"
    input %x: f32[1,3,48,320] ("n", 3, 48, "w")
    %0 = Constant{tensor=f32[8,3,3,3]{sha256 5b2ed63e0dcbbb9f}}() : f32[8,3,3,3] "weights"
    %1 = Conv{pads=(1, 1, 1, 1)}(%x, %0) : f32[1,8,48,320] "conv"
    %2 = Constant{tensor=f32[]{6.0}}() : f32[]
    %3 = Clip(%1, _, %2) : f32[1,8,48,320] "clip"
    output y = %3 ("n", 8, 48, "w")

Inputs go by their names, results by numbers in the order of `Graph.nodes`. Fields at their defaults are left out; `_`
is an operand left out; behind the types stand the ONNX names. Dimensions of inputs and outputs follow where they are
not the extents. A constant is printed with its elements if it is small, as one element if that stands for all, else
with the beginning of the digest of its content. Assumptions stand behind the outputs, as `assume %7 = True`.

The body of an operator is a field, in braces, with names and numbers of its own. What is known of an input of a body
stands behind its type:

    %4 = If{then_body={
      input %a: f32[2,3]
      input %rows: i64[1] = i64[1]{2}
      %0 = Relu(%a) : f32[2,3] "relu"
      output y = %0
    }, else_body={ ... }}(%c, %x, %3) : f32[2,3] "if"
"""

from __future__ import annotations

import dataclasses
import json
import math
import textwrap
from typing import Any

import numpy as np

from glowstone.graph.graph import Graph, Node, Value
from glowstone.graph.operator import Operator
from glowstone.graph.tensor import Tensor
from glowstone.text import Printers, print_value, quote_name
from glowstone.types import Dimension

GRAPH_TEXT_VERSION = 1
HEADER = "glowstone.graph"
LEFT_OUT = "_"
_INDENT = "  "
MAX_PRINTED_ELEMENTS = 32
"""Larger constants are printed as a digest."""
DIGEST_DIGITS = 16
"""How much of a digest is printed."""

_Names = dict[Value, str]


def print_graph(graph: Graph) -> str:
    """The graph as text; `parse_graph` reads it back, with the data of large constants given beside it."""
    header = f"{HEADER} {GRAPH_TEXT_VERSION}" + (f" {json.dumps(graph.name)}" if graph.name else "")
    return "\n".join([header, *_print_content_of(graph)]) + "\n"


def print_body(body: Graph) -> str:
    """A graph as a field of an operator."""
    name = f" {json.dumps(body.name)}" if body.name else ""
    lines = "\n".join(_print_content_of(body))
    return f"{{{name}\n{textwrap.indent(lines, _INDENT)}\n}}"


def _print_content_of(graph: Graph) -> list[str]:
    """Everything behind the header."""
    names: _Names = {value: f"%{_input_name(value.name)}" for value in graph.inputs}
    lines = []
    for value, dimensions in zip(graph.inputs, graph.dimensions, strict=True):
        known = "" if value.known is None else f" = {print_tensor(Tensor(value.known, value.element))}"
        lines.append(f"input {names[value]}: {value.type}{_print_dimensions(value, dimensions)}{known}")
    for node in graph.nodes:
        for result in node.results:
            names[result] = f"%{len(names) - len(graph.inputs)}"
        lines.append(_print_node(node, names))
    for name, value, dimensions in zip(graph.output_names, graph.outputs, graph.output_dimensions, strict=True):
        lines.append(f"output {quote_name(name)} = {names[value]}" + _print_dimensions(value, dimensions))
    lines += (f"assume {names[condition]} = {truth}" for condition, truth in graph.assumptions)
    return lines


def print_operator(operator: Operator) -> str:
    """Name and fields of an operator, but for fields at their defaults."""
    fields = []
    for field in dataclasses.fields(operator):
        text = print_value(getattr(operator, field.name), _PRINTERS)
        # by text, which tells 0.0, -0.0, 0 and False apart
        if field.default is dataclasses.MISSING or text != print_value(field.default, _PRINTERS):
            fields.append(f"{field.name}={text}")
    return operator.name + (f"{{{', '.join(fields)}}}" if fields else "")


def print_tensor(tensor: Tensor) -> str:
    """Type and content of a constant."""
    return f"{tensor.type}{{{_print_content(tensor)}}}"


def named_tensors(graph: Graph) -> dict[str, Tensor]:
    """The constants that `print_graph` does not write out, by printed digest: what `parse_graph` needs beside it."""
    tensors = [Tensor(value.known, value.element) for value in graph.inputs if value.known is not None]
    named: dict[str, Tensor] = {}
    for node in graph.nodes:
        tensors += (value for value in node.operator.attributes().values() if isinstance(value, Tensor))
        for body in node.operator.bodies:
            named |= named_tensors(body)
    return named | {tensor.digest[:DIGEST_DIGITS]: tensor for tensor in tensors if _is_named(tensor)}


def _print_node(node: Node, names: _Names) -> str:
    results = ", ".join(names[result] for result in node.results)
    operands = ", ".join(LEFT_OUT if operand is None else names[operand] for operand in node.operands)
    types = ", ".join(str(result.type) for result in node.results)
    origin = "".join(f" {json.dumps(name)}" for name in node.names)
    return f"{results} = {print_operator(node.operator)}({operands}) : {types}{origin}"


def _input_name(name: str) -> str:
    """A bare number is a result, so an input of such a name is quoted."""
    return json.dumps(name) if name.isdecimal() else quote_name(name)


def _print_dimensions(value: Value, dimensions: tuple[Dimension, ...]) -> str:
    return "" if dimensions == value.shape else f" {print_value(dimensions)}"


def _is_named(tensor: Tensor) -> bool:
    return tensor.array.size > MAX_PRINTED_ELEMENTS and not tensor.is_splat


def _print_content(tensor: Tensor) -> str:
    if _is_named(tensor):
        return f"sha256 {tensor.digest[:DIGEST_DIGITS]}"
    if tensor.is_splat and tensor.array.size > 1:
        return f"splat {_print_elements(tensor.array.reshape(-1)[:1])}"
    return _print_elements(tensor.array.reshape(-1))


def _print_elements(flat: np.ndarray[Any, np.dtype[Any]]) -> str:
    """Numbers, or hexadecimal bytes where numbers do not say it all: NaN with a payload."""
    numbers = flat.tolist()
    plain = np.array([math.nan if number != number else number for number in numbers], flat.dtype)
    if not numbers or plain.tobytes() == flat.tobytes():
        return ", ".join(map(str, numbers))
    return f"hex {flat.astype(flat.dtype.newbyteorder('<')).tobytes().hex()}"


_PRINTERS: Printers = {Tensor: print_tensor, Operator: print_operator, Graph: print_body}
