"""A graph as an ONNX model.

In: a graph at any stage. Out: a `ModelProto` with the graph's inputs and outputs. Operators that ONNX has are in the
standard domain, so a graph made of those alone can be imported again and means the same; all others are in the domain
"glowstone". Every value carries its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import glowstone
from glowstone.errors import LimitError
from glowstone.exporter.own import own_form
from glowstone.exporter.standard import standard_form
from glowstone.exporter.standard_rules import ONNX_TYPES
from glowstone.graph import Graph, Node, Tensor, Value
from glowstone.importer.packing import BYTE, packed
from glowstone.importer.tensors import ELEMENT_TYPES
from glowstone.ops import Constant
from glowstone.types import Dimension, ElementType

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

Array = np.ndarray[Any, np.dtype[Any]]

DOMAIN: Final = "glowstone"
DOMAIN_VERSION: Final = 1
OPSET: Final = 21
"""Of models whose element types it knows."""
FIRST_OPSETS: Final = {
    ElementType.F4E2M1: 23,
    ElementType.F8E8M0: 24,
    ElementType.I2: 25,
    ElementType.U2: 25,
    ElementType.F6E2M3: 28,
    ElementType.F6E3M2: 28,
}
"""The opset that brought a newer element type."""
LIMIT: Final = 2**31 - 1
"""Bytes that a protobuf message may have."""


def export_graph(graph: Graph) -> ModelProto:
    """The graph as a model.

    Raises:
        LimitError: weights and all are more than one protobuf message can hold.
    """
    values = [value for part in graph.nested() for value in _values(part)]
    opset = max((FIRST_OPSETS.get(value.element, OPSET) for value in values), default=OPSET)
    return _Exporter(graph, opset).model()


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.results


class _Exporter:
    """Makes the proto of one graph; a body has an exporter of its own."""

    def __init__(self, graph: Graph, opset: int) -> None:
        self._graph = graph
        self._opset = opset
        self._names: dict[Value, str] = {value: value.name for value in graph.inputs}
        self._taken = {*self._names.values(), *graph.output_names}
        self._node_names: set[str] = set()
        self._nodes: list[NodeProto] = []
        self._initializers: list[TensorProto] = []
        self._infos: list[ValueInfoProto] = []
        self._bytes = 0

    def model(self) -> ModelProto:
        from onnx import helper

        body = self.graph_proto()
        opsets = [helper.make_opsetid("", self._opset)]
        if any(node.domain == DOMAIN for node in self._nodes):
            opsets.append(helper.make_opsetid(DOMAIN, DOMAIN_VERSION))
        return helper.make_model(
            body,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets[:1]),
            producer_name=DOMAIN,
            producer_version=glowstone.__version__,
        )

    def graph_proto(self) -> GraphProto:
        from onnx import helper

        graph = self._graph
        self._name_outputs()
        for node in graph.nodes:
            if isinstance(node.operator, Constant):
                self._names[node.result] = self._initializer(node.operator.tensor, self._preferred_name(node.result))
            else:
                self._node(node)
        inputs = [
            _info(value.name, value, dimensions)
            for value, dimensions in zip(graph.inputs, graph.dimensions, strict=True)
        ]
        outputs = self._outputs()
        return helper.make_graph(
            self._nodes, graph.name or "graph", inputs, outputs, self._initializers, value_info=self._infos
        )

    def _name_outputs(self) -> None:
        """A value that a node computes goes by the first output that it is."""
        for name, value in zip(self._graph.output_names, self._graph.outputs, strict=True):
            if value.node is not None and not isinstance(value.node.operator, Constant):
                self._names.setdefault(value, name)

    def _outputs(self) -> list[ValueInfoProto]:
        """The outputs; one that is not a node's own result gets an Identity."""
        from onnx import helper

        graph = self._graph
        infos = []
        for name, value, dimensions in zip(graph.output_names, graph.outputs, graph.output_dimensions, strict=True):
            if self._names[value] != name:
                self._nodes.append(
                    helper.make_node("Identity", [self._names[value]], [name], self._node_name(f"output_{name}"))
                )
            infos.append(_info(name, value, dimensions))
        return infos

    def _node(self, node: Node) -> None:
        from onnx import helper

        standard = standard_form(node, self._opset)
        form = standard or own_form(node)
        operands = ["" if operand is None else self._names[operand] for operand in node.operands]
        operands += (self._initializer(Tensor(array), f"{form.kind}_operand") for array in form.constants)
        results = [self._result(value) for value in node.results]
        attributes = {name: self._attribute(name, value) for name, value in form.attributes.items()}
        domain = "" if standard else DOMAIN
        self._nodes.append(
            helper.make_node(
                form.kind, operands, results, self._node_name(", ".join(node.names)), domain=domain, **attributes
            )
        )

    def _attribute(self, name: str, value: Any) -> Any:
        """A value for `helper.make_node`."""
        if isinstance(value, Graph):
            return _Exporter(value, self._opset).graph_proto()
        if not isinstance(value, np.ndarray):
            return value
        tensor = Tensor(value)
        return _tensor(name, tensor.array, ONNX_TYPES[tensor.element])

    def _result(self, value: Value) -> str:
        """Name a result and declare its type."""
        if value not in self._names:
            self._names[value] = self._fresh(self._preferred_name(value))
        name = self._names[value]
        if name not in self._graph.output_names:
            self._infos.append(_info(name, value, value.shape if not value.dynamic else (None,) * value.rank))
        return name

    def _preferred_name(self, value: Value) -> str:
        assert value.node is not None
        return value.name or (value.node.names[0] if value.node.names else value.node.operator.name)

    def _fresh(self, wanted: str) -> str:
        return _unique(wanted, self._taken)

    def _node_name(self, wanted: str) -> str:
        """A name for a node: none may be there twice. Nodes without one stay so."""
        return _unique(wanted, self._node_names) if wanted else ""

    def _initializer(self, tensor: Tensor, wanted: str) -> str:
        """Add a constant and return its name.

        Raises:
            LimitError: the model has become too large.
        """
        self._bytes += tensor.array.nbytes
        if self._bytes > LIMIT:
            raise LimitError("the model is too large for one ONNX file", expected=f"{LIMIT} bytes", found=self._bytes)
        name = self._fresh(wanted)
        self._initializers.append(_tensor(name, tensor.array, ONNX_TYPES[tensor.element]))
        return name


def _unique(wanted: str, taken: set[str]) -> str:
    """The name, or that with a number where it is taken; it is taken then."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def _tensor(name: str, array: Array, number: int) -> TensorProto:
    """A tensor with its elements as little-endian bytes."""
    from onnx import helper

    element = ELEMENT_TYPES[number]
    content = packed(array, element) if element.bits < BYTE else np.ascontiguousarray(array)
    raw = content.astype(content.dtype.newbyteorder("<"), copy=False).tobytes()
    return helper.make_tensor(name, number, array.shape, raw, raw=True)


def _info(name: str, value: Value, dimensions: Sequence[Dimension | None]) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, ONNX_TYPES[value.element], dimensions)
