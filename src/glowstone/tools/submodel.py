"""Parts of an ONNX model as models of their own.

In: a model, and arrays for the values that a part takes. Out: a model that computes named values from its inputs. Nodes
go by their position in the model's list, which is in topological order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from glowstone.types import ElementType

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

Array = np.ndarray[Any, np.dtype[Any]]


class Submodels:
    """Cuts parts out of one model, which stays as it is."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        graph = model.graph
        self.nodes: Sequence[NodeProto] = graph.node
        self._weights = {tensor.name: tensor for tensor in graph.initializer}
        self._inputs = {info.name: info for info in graph.input if info.name not in self._weights}
        self._outputs = [info.name for info in graph.output]
        self._producers = {name: position for position, node in enumerate(self.nodes) for name in node.output if name}
        self._last_uses = self._find_last_uses()

    def computed(self) -> list[str]:
        """Names of all values that nodes compute, in order."""
        return list(self._producers)

    def producer(self, name: str) -> int:
        """The position of the node that computes a value."""
        return self._producers[name]

    def live(self, count: int) -> list[str]:
        """Values that the first `count` nodes compute and later nodes, or the outputs, use. In order."""
        return [
            name
            for name, position in self._producers.items()
            if position < count and self._last_uses.get(name, -1) >= count
        ]

    def handed_on(self, positions: Iterable[int]) -> list[str]:
        """Values that the nodes at these positions compute and other nodes, or the outputs, use. In order."""
        inside = set(positions)
        read = {name for position, node in enumerate(self.nodes) if position not in inside for name in names_read(node)}
        read.update(self._outputs)
        return [name for name, position in self._producers.items() if position in inside and name in read]

    def with_all_values(self, values: Mapping[str, Array] | None = None) -> ModelProto:
        """The model with every value that a node computes as an output; `values` say the types where known."""
        from onnx import ModelProto, ValueInfoProto

        copy = ModelProto()
        copy.CopyFrom(self._model)
        declared = {info.name: info for info in copy.graph.value_info}
        declared.update((name, described(name, array)) for name, array in (values or {}).items())
        missing = [name for name in self._producers if name not in self._outputs]
        copy.graph.output.extend(declared.get(name) or ValueInfoProto(name=name) for name in missing)
        return copy

    def cut(self, positions: Iterable[int], outputs: Sequence[str], values: Mapping[str, Array]) -> ModelProto:
        """The nodes at `positions` that `outputs` need, as a model.

        Args:
            positions: of nodes that the part may have.
            outputs: values that these nodes compute.
            values: an array by name for what the part takes from outside and for its outputs: it says the types.
        """
        from onnx import helper

        chosen = self._needed(set(positions), outputs)
        produced = {name for position in chosen for name in self.nodes[position].output}
        taken = {name: None for position in chosen for name in names_read(self.nodes[position])}
        inputs = [name for name in taken if name not in produced and name not in self._weights]
        weights = [self._weights[name] for name in taken if name in self._weights]
        graph = helper.make_graph(
            [self.nodes[position] for position in chosen],
            "part",
            [self._inputs[name] if name in self._inputs else described(name, values[name]) for name in inputs],
            [described(name, values[name]) for name in outputs],
            weights,
        )
        model = helper.make_model(
            graph, opset_imports=list(self._model.opset_import), functions=list(self._model.functions)
        )
        model.ir_version = self._model.ir_version
        return model

    def _needed(self, allowed: set[int], outputs: Sequence[str]) -> list[int]:
        """Positions among the allowed ones that the outputs need, in order."""
        needed: set[int] = set()
        waiting = list(outputs)
        while waiting:
            position = self._producers.get(waiting.pop(), -1)
            if position in allowed and position not in needed:
                needed.add(position)
                waiting.extend(names_read(self.nodes[position]))
        return sorted(needed)

    def _find_last_uses(self) -> dict[str, int]:
        """The last position that reads each value; one behind the last node for outputs."""
        uses: dict[str, int] = {}
        for position, node in enumerate(self.nodes):
            uses.update(dict.fromkeys(names_read(node), position))
        uses.update(dict.fromkeys(self._outputs, len(self.nodes)))
        return uses


def names_read(node: NodeProto) -> list[str]:
    """Names of the values that a node reads, those that its subgraphs take from outside included."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            names.extend(_names_from_outside(graph))
    return names


def _names_from_outside(graph: GraphProto) -> list[str]:
    inside = {tensor.name for tensor in graph.initializer} | {info.name for info in graph.input}
    inside |= {name for node in graph.node for name in node.output}
    read = [name for node in graph.node for name in names_read(node)] + [info.name for info in graph.output]
    return [name for name in read if name not in inside]


def described(name: str, array: Array) -> ValueInfoProto:
    """The declaration of a value of an array's element type and shape."""
    from onnx import helper

    from glowstone.importer.tensors import ELEMENT_TYPES

    element = ElementType.from_dtype(array.dtype)
    number = next(number for number, known in ELEMENT_TYPES.items() if known is element)
    return helper.make_tensor_value_info(name, number, array.shape)
