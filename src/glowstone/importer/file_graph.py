"""One graph of a file as nodes to be run in steps: who reads what, what is constant, what an output needs.

A graph is the model's, or a body inside another; a body sees the names of the graphs around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from glowstone.errors import UnsupportedError
from glowstone.graph import Builder, Graph, Tensor, Value, evaluate_graph
from glowstone.host import HostBody, HostNode, HostRule, host_rule
from glowstone.importer.attribute_kinds import attribute_kind
from glowstone.importer.bodies import bodies_of
from glowstone.importer.model_file import ModelFile
from glowstone.importer.nodes import import_initializers, import_node, is_of_texts, moves_to_host
from glowstone.importer.order import names_read
from glowstone.importer.registry import canonical_domain, rule_for, takes_sequences
from glowstone.importer.scope import Scope
from glowstone.importer.structure import node_name
from glowstone.importer.tensors import ELEMENT_TYPES, decode_tensor, decode_texts, element_type
from glowstone.importer.texts import TEXT, names_texts
from glowstone.ops import Constant
from glowstone.support.budget import budget
from glowstone.types import Dimension

Array = np.ndarray[Any, np.dtype[Any]]

NEVER_CONSTANT = frozenset({"NonZero", "Compress", "Unique", "NonMaxSuppression", "SplitToSequence"})
"""Operators that may give more than plain values even where their operands are constant."""


class FileGraph:
    """See the module.

    Args:
        model: the file.
        proto: the GraphProto.
        outer: the graph around a body.
        fixed: inputs that are constants.
    """

    def __init__(
        self,
        model: ModelFile,
        proto: Any,
        outer: FileGraph | None = None,
        fixed: Mapping[str, Array] | None = None,
    ) -> None:
        self.model = model
        self.outer = outer
        self.name = str(proto.name)
        self.nodes = list(proto.node)
        self._fixed = dict(fixed or {})
        self._initializers = {tensor.name: tensor for tensor in proto.initializer}
        self._proto = proto
        self._values: dict[str, Array] = {}
        """Constants that the host asked for."""
        given = self._initializers.keys() | self._fixed.keys()
        self.input_names = tuple(entry.name for entry in proto.input if entry.name not in given)
        self.output_names = tuple(entry.name for entry in proto.output)
        self.reads = [tuple(dict.fromkeys(names_read(node))) for node in self.nodes]
        self._makers = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        self._static = self._constant_nodes()
        self._texts = {name for name, tensor in self._initializers.items() if tensor.data_type == TEXT}

    # What there is to run

    def live_nodes(self) -> tuple[int, ...]:
        """The nodes that outputs need, without those that are constant."""
        needed: set[int] = set()
        stack = list(self.output_names)
        while stack:
            index = self._makers.get(stack.pop())
            if index is not None and index not in needed and index not in self._static:
                needed.add(index)
                stack.extend(self.reads[index])
        return tuple(sorted(needed))

    def writes(self, index: int) -> tuple[str, ...]:
        """Names of a node's results."""
        return tuple(name for name in self.nodes[index].output if name)

    def _gives_tensors(self, index: int) -> bool:
        node = self.nodes[index]
        domain = canonical_domain(node.domain)
        rule = rule_for(node.op_type, self.model.opset_of(node), domain)
        return rule is not None and not takes_sequences(rule)

    def runs_on_host(self, index: int) -> bool:
        """Whether the node can run on the host."""
        return self.host_rule(index) is not None

    def is_imported(self, index: int) -> bool:
        """Whether there is a rule that makes the node part of a compiled graph."""
        node = self.nodes[index]
        domain = canonical_domain(node.domain)
        return rule_for(node.op_type, self.model.opset_of(node), domain) is not None and not is_of_texts(node)

    def moves_to_host(self, index: int) -> bool:
        """Whether the node can run on the host where it fits no compiled graph."""
        return moves_to_host(self.nodes[index])

    def host_rule(self, index: int) -> HostRule | None:
        """What a node means on the host; None where it cannot run there."""
        node = self.nodes[index]
        return host_rule(node.op_type, canonical_domain(node.domain))

    def dimensions(self, name: str) -> tuple[Dimension, ...] | None:
        """What the file declares of a value: an extent, or "" where open; None where it declares no rank."""
        return self._declared.get(name)

    @cached_property
    def _declared(self) -> dict[str, tuple[Dimension, ...]]:
        entries = (*self._proto.input, *self._proto.value_info, *self._proto.output)
        return {
            entry.name: tuple(dim.dim_value if dim.dim_value > 0 else "" for dim in entry.type.tensor_type.shape.dim)
            for entry in entries
            if entry.type.HasField("tensor_type") and entry.type.tensor_type.HasField("shape")
        }

    def output_shapes(self) -> list[tuple[np.dtype[Any], tuple[int, ...]] | None]:
        """Declared type and shape of every output, 0 for an open extent; None where the file leaves them out."""
        result: list[tuple[np.dtype[Any], tuple[int, ...]] | None] = []
        for entry in self._proto.output:
            tensor = entry.type.tensor_type
            if tensor.elem_type not in ELEMENT_TYPES:
                result.append(None)
            else:
                shape = tuple(max(dim.dim_value, 0) for dim in tensor.shape.dim)
                result.append((ELEMENT_TYPES[tensor.elem_type].dtype, shape))
        return result

    # Constants

    def is_constant(self, name: str) -> bool:
        """Whether a name stands for a constant, here or around."""
        owner = self._owner(name)
        return owner is not None and owner._is_own_constant(name)

    def is_text(self, name: str) -> bool:
        """Whether a name stands for constant texts, here or around."""
        owner = self._owner(name)
        return owner is not None and name in owner._texts

    def constant(self, name: str) -> Array:
        """The value of a constant."""
        owner = self.owner(name)
        if name not in owner._values:
            if name in owner._texts:
                owner._values[name] = decode_texts(owner._initializers[name])
            else:
                graph = Graph()
                graph.add_output(name, owner.emit_constant(name, Scope(Builder(graph))))
                for node in graph.nodes:
                    if not isinstance(node.operator, Constant):
                        budget().take_bytes(sum(value.type.bytes for value in node.results), "constants of the host")
                owner._values[name] = evaluate_graph(graph, {})[name]
        return owner._values[name]

    def emit_constant(self, name: str, scope: Scope) -> Value:
        """A constant of this very graph, emitted with what it follows from into a scope that holds nothing else."""
        wanted, stack = set(), [name]
        while stack:
            current = stack.pop()
            if scope.has(current):
                continue
            if current in self._fixed:
                scope.define(current, scope.builder.emit(Constant(Tensor(self._fixed[current]))))
            elif current in self._initializers:
                import_initializers(self.model, scope, [self._initializers[current]])
            elif current in self._makers:
                index = self._makers[current]
                if index not in wanted:
                    wanted.add(index)
                    stack.extend(self.reads[index])
            else:
                assert self.outer is not None
                owner = self.outer._owner(current)
                assert owner is not None
                scope.define(current, owner.emit_constant(current, Scope(scope.builder)))
        for index in sorted(wanted):
            import_node(self.model, scope, self.nodes[index], index)
        found = scope.find(name)
        assert isinstance(found, Value), "a constant node gives plain values"
        return found

    def owner(self, name: str) -> FileGraph:
        """The graph that defines a name, this or one around."""
        owner = self._owner(name)
        assert owner is not None, f"{name} is not defined"
        return owner

    def _owner(self, name: str) -> FileGraph | None:
        graph: FileGraph | None = self
        while graph is not None and not graph._defines(name):
            graph = graph.outer
        return graph

    def _defines(self, name: str) -> bool:
        known = (self._initializers, self._fixed, self._makers)
        return any(name in names for names in known) or name in self.input_names

    def _is_own_constant(self, name: str) -> bool:
        return name in self._initializers or name in self._fixed or self._makers.get(name) in self._static

    def _constant_nodes(self) -> set[int]:
        """Nodes that follow from constants alone."""
        self._static = found = set[int]()
        self._texts = set()
        for index, node in enumerate(self.nodes):
            if (
                node.op_type not in NEVER_CONSTANT
                and self._gives_tensors(index)
                and not any(bodies_of(node))
                and not names_texts(node)
                and all(self.is_constant(name) and not self._reads_text(name) for name in self.reads[index])
            ):
                found.add(index)
        return found

    def _reads_text(self, name: str) -> bool:
        owner = self._owner(name)
        return owner is not None and name in owner._initializers and owner._initializers[name].data_type == TEXT

    # Nodes on the host

    def bodies(self, index: int) -> dict[str, FileGraph]:
        """The bodies of a node by attribute name."""
        return {
            entry.name: FileGraph(self.model, entry.g, self)
            for entry in self.nodes[index].attribute
            if entry.HasField("g")
        }

    def host_node(self, index: int, bodies: Mapping[str, HostBody]) -> HostNode:
        """A node as its host rule sees it."""
        node = self.nodes[index]
        attributes = {}
        for entry in node.attribute:
            value = _host_attribute(self.model, node.op_type, entry)
            if value is not None:
                attributes[entry.name] = value
        opset = self.model.opset_of(node)
        return HostNode(node.op_type, node_name(node, index), attributes, bodies, opset, len(node.output))


def _host_attribute(model: ModelFile, kind: str, entry: Any) -> Any:
    """An attribute as a Python value; None for one that no host rule needs."""
    import onnx

    kinds = onnx.AttributeProto
    found = attribute_kind(entry)
    if kind == "Cast" and entry.name == "to":
        return np.dtype(object) if entry.i == TEXT else element_type(entry.i, "attribute to").dtype
    if found == kinds.TENSOR:
        return decode_texts(entry.t) if entry.t.data_type == TEXT else decode_tensor(entry.t, model.external).array
    if found == kinds.STRING:
        return entry.s.decode("utf-8", "replace")
    if found == kinds.STRINGS:
        return tuple(text.decode("utf-8", "replace") for text in entry.strings)
    if found in (kinds.INTS, kinds.FLOATS):
        return tuple(entry.ints or entry.floats)
    if found in (kinds.INT, kinds.FLOAT):
        return entry.i if found == kinds.INT else entry.f
    if found in (kinds.GRAPH, kinds.TYPE_PROTO):
        return None
    raise UnsupportedError(f"attribute {entry.name} is of a kind that is not supported", operator=kind)
