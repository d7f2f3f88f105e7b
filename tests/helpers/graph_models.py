"""Graphs as ONNX models: as they are, with all values as outputs, or with nodes between them that change nothing."""

from __future__ import annotations

import random as random_numbers

import onnx
from onnx import TensorProto, helper, numpy_helper

from glowstone.graph import Graph, Node, Value
from glowstone.ops import Constant
from helpers.onnx_nodes import axes_operands, needed_opset, onnx_node
from helpers.operator_samples import OWN, rule_of

IMPORTABLE = tuple(name for name, kind in OWN.items() if kind.onnx is not None)
"""The operators that ONNX has."""
LEAST_OPSET = 18
"""That of the nodes that change nothing."""
IR_VERSION = 10


def onnx_model(
    graph: Graph, *, all_values: bool = False, disturb: random_numbers.Random | None = None
) -> onnx.ModelProto:
    """The model of a graph of importable operators.

    Args:
        graph: what is written; its constants become initializers.
        all_values: every result of every node is an output, too.
        disturb: where given, it draws operands that reach their node through nodes that change nothing.
    """
    writer = _Writer(graph, disturb)
    return writer.model(all_values)


class _Writer:
    def __init__(self, graph: Graph, disturb: random_numbers.Random | None) -> None:
        self._graph = graph
        self._disturb = disturb
        self._names: dict[Value, str] = {value: value.name for value in graph.inputs}
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._count = 0
        self._opset = LEAST_OPSET

    def model(self, all_values: bool) -> onnx.ModelProto:
        graph = self._graph
        for node in graph.nodes:
            self._write(node)
        outputs = []
        for name, value in zip(graph.output_names, graph.outputs, strict=True):
            self._nodes.append(helper.make_node("Identity", [self._names[value]], [name], name=f"out {name}"))
            outputs.append(_port(name, value))
        if all_values:
            inner = [value for value, name in self._names.items() if value.node is not None and name.startswith("v")]
            outputs += [_port(self._names[value], value) for value in inner]
        inputs = [_port(value.name, value, dims) for value, dims in zip(graph.inputs, graph.dimensions, strict=True)]
        body = helper.make_graph(self._nodes, "random", inputs, outputs, self._initializers)
        return helper.make_model(body, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=IR_VERSION)

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _write(self, node: Node) -> None:
        operator = node.operator
        if isinstance(operator, Constant):
            self._names[node.result] = self._constant(operator.tensor.array)
            return
        names = [
            "" if value is None else self._through(value, is_host=rule_of(operator, index).host)
            for index, value in enumerate(node.operands)
        ]
        axes = axes_operands(operator)
        if axes:  # they stand behind all operands, those left out too
            names += [""] * (len(operator.operands) - len(names))
        names += [self._constant(array) for array in axes]
        for value in node.results:
            self._names[value] = self._name("v")
        results = [self._names[value] for value in node.results]
        self._nodes.append(onnx_node(operator, names, results, self._name("node ")))
        self._opset = max(self._opset, needed_opset(operator, len(node.operands)))

    def _constant(self, array) -> str:
        name = self._name("c")
        self._initializers.append(numpy_helper.from_array(array, name))
        return name

    def _through(self, value: Value, is_host: bool) -> str:
        """The name of a value, or of the same value behind nodes that change nothing."""
        name = self._names[value]
        if self._disturb is None or self._disturb.randint(0, 99) < 50:
            return name
        ways = [self._identity]
        if value.rank and not is_host:
            ways += [self._split_and_joined, self._transposed_twice]
        return self._disturb.choice(ways)(name, value)

    def _emit(self, kind: str, names: list[str], count: int = 1, **attributes) -> list[str]:
        results = [self._name("n") for _ in range(count)]
        self._nodes.append(helper.make_node(kind, names, results, name=self._name("node "), **attributes))
        return results

    def _identity(self, name: str, value: Value) -> str:
        return self._emit("Identity", [name])[0]

    def _split_and_joined(self, name: str, value: Value) -> str:
        axis = self._disturb.randrange(value.rank)
        if value.shape[axis] < 2 or value.dynamic:
            return self._identity(name, value)
        parts = self._emit("Split", [name], 2, axis=axis, num_outputs=2)
        return self._emit("Concat", parts, axis=axis)[0]

    def _transposed_twice(self, name: str, value: Value) -> str:
        order = list(range(value.rank))
        self._disturb.shuffle(order)
        back = [order.index(axis) for axis in range(value.rank)]
        return self._emit("Transpose", self._emit("Transpose", [name], perm=order), perm=back)[0]


def _port(name: str, value: Value, dimensions=None) -> onnx.ValueInfoProto:
    number = helper.np_dtype_to_tensor_dtype(value.element.dtype)
    assert number != TensorProto.UNDEFINED
    return helper.make_tensor_value_info(name, number, dimensions if dimensions is not None else value.shape)
