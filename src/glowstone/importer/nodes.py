"""Nodes of a file, one after another: operands by name, attributes as Python values, the rule, results by name.

Attributes that are graphs become `Body` objects, which a rule builds as graphs of their own or makes a part of the
graph around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from glowstone.errors import GlowstoneError, ModelError, UnknownValueError, UnsupportedError
from glowstone.graph import Builder, Graph, Value
from glowstone.host import host_rule, is_for_texts
from glowstone.importer.attribute_kinds import attribute_kind
from glowstone.importer.imported import Counted
from glowstone.importer.model_file import ModelFile
from glowstone.importer.registry import BodyInput, OnnxBody, OnnxNode, canonical_domain, rule_for, takes_sequences
from glowstone.importer.scope import Scope
from glowstone.importer.structure import node_name
from glowstone.importer.tensors import decode_tensor
from glowstone.importer.texts import names_texts
from glowstone.ops import Constant
from glowstone.support.budget import budget


def import_initializers(model: ModelFile, scope: Scope, tensors: Iterable[Any]) -> None:
    """Emit the initializers of a graph of the file."""
    for tensor in tensors:
        scope.builder.names = (tensor.name,)
        scope.define(tensor.name, scope.builder.emit(Constant(decode_tensor(tensor, model.external))))


def import_nodes(model: ModelFile, scope: Scope, nodes: Iterable[Any]) -> None:
    """Emit the nodes of a graph of the file, in its order.

    Raises:
        UnknownValueError: a result is no plain value, or a node can only run on the host.
        GlowstoneError: with node and operator filled in.
    """
    for index, node in enumerate(nodes):
        if is_of_texts(node):
            raise UnknownValueError("texts are worked on by the host").with_context(node=node_name(node, index))
        try:
            import_node(model, scope, node, index)
        except UnsupportedError as error:
            if not moves_to_host(node):
                raise
            raise UnknownValueError(f"the node runs on the host: {error.message}").with_context(
                node=error.node, operator=error.operator
            ) from error
        for value in (scope.find(name) for name in node.output if name):
            if isinstance(value, Counted):
                raise UnknownValueError("how many elements a result has depends on input data")


def moves_to_host(node: Any) -> bool:
    """Whether a node can run on the host where it fits no compiled graph."""
    rule = host_rule(node.op_type, canonical_domain(node.domain))
    return rule is not None and not is_for_texts(rule)


def is_of_texts(node: Any) -> bool:
    """Whether a node runs on the host because it gives or takes texts, by what its attributes say."""
    rule = host_rule(node.op_type, canonical_domain(node.domain))
    return rule is not None and is_for_texts(rule) and names_texts(node)


class Body(OnnxBody):
    """A graph that is an attribute of a node in a scope."""

    def __init__(self, model: ModelFile, proto: Any, scope: Scope) -> None:
        self._model = model
        self._proto = proto
        self._scope = scope

    @property
    def input_names(self) -> list[str]:
        return [entry.name for entry in self._proto.input]

    @property
    def input_ranks(self) -> list[int | None]:
        tensors = [entry.type.tensor_type for entry in self._proto.input]
        return [len(tensor.shape.dim) if tensor.HasField("shape") else None for tensor in tensors]

    def inline(self, begin: Callable[[Scope], None] | None = None) -> tuple[Value, ...]:
        inner = Scope(self._scope.builder, self._scope)
        if begin is not None:
            begin(inner)
        return self._import(inner)

    def build(
        self, inputs: Sequence[BodyInput], begin: Callable[[Scope], None] | None = None, scope: Scope | None = None
    ) -> Scope:
        outer = scope or self._scope
        graph = Graph(self._proto.name)
        inner = Scope(Builder(graph, outer.builder.names), outer)
        for entry in inputs:
            inner.add_input(entry.name, entry.type, entry.dynamic)
        if begin is not None:
            begin(inner)
        try:
            outputs = self._import(inner)
        except UnknownValueError as error:
            error.value = inner.outside(error.value)
            raise
        for value, entry in zip(outputs, self._proto.output, strict=True):
            graph.add_output(f"{len(graph.outputs)}.{entry.name}", value)  # one name may be there twice
        return inner

    def _import(self, scope: Scope) -> tuple[Value, ...]:
        names = scope.builder.names
        import_initializers(self._model, scope, self._proto.initializer)
        import_nodes(self._model, scope, self._proto.node)
        scope.builder.names = names
        return tuple(scope.value(entry.name) for entry in self._proto.output)


def import_node(model: ModelFile, scope: Scope, node: Any, index: int) -> None:
    """Emit one node and define its results.

    Raises:
        GlowstoneError: with node and operator filled in.
    """
    budget().take_nodes(1)
    name = node_name(node, index)
    scope.builder.names = (name,)
    try:
        operands = tuple(scope.find(operand) if operand else None for operand in node.input)
        attributes = _attributes(model, scope, node)
        domain = canonical_domain(node.domain)
        opset = model.opset_of(node)
        rule = rule_for(node.op_type, opset, domain)
        if rule is None:
            raise UnsupportedError("the operator runs on the host only")
        if not all(operand is None or isinstance(operand, Value) for operand in operands) and not takes_sequences(rule):
            raise UnsupportedError("an operand is a sequence", expected="tensors")
        values = cast("tuple[Value | None, ...]", operands)  # but for rules that take sequences
        wrapped = OnnxNode(scope, node.op_type, name, values, attributes, opset, len(node.output))
        results = rule(wrapped)
    except GlowstoneError as error:
        raise error.with_context(node=name, operator=node.op_type) from error.__cause__
    results = results if isinstance(results, tuple) else (results,)
    needed = max((index + 1 for index, output in enumerate(node.output) if output), default=0)
    if needed > len(results):
        raise UnsupportedError(
            "a result of the operator is not supported",
            node=name,
            operator=node.op_type,
            expected=f"at most {len(results)} results",
            found=needed,
        )
    for output, value in zip(node.output, results, strict=False):
        if output:
            if isinstance(value, Value):
                value.name = value.name or output
            scope.define(output, value)


def _attributes(model: ModelFile, scope: Scope, node: Any) -> dict[str, Any]:
    """The node's attributes by name: int, float, str, Tensor, Body, or a tuple of the first three.

    Raises:
        ModelError: two attributes of one name, or one whose kind is unknown.
        UnsupportedError: a kind that no operator here has.
    """
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in attributes:
            raise ModelError("an attribute is given twice", expected="distinct names", found=attribute.name)
        attributes[attribute.name] = _attribute(model, scope, attribute)
    return attributes


def _attribute(model: ModelFile, scope: Scope, attribute: Any) -> Any:
    import onnx

    kinds = onnx.AttributeProto
    kind = attribute_kind(attribute)
    fields: dict[int, str] = {
        kinds.INT: "i",
        kinds.FLOAT: "f",
        kinds.STRING: "s",
        kinds.INTS: "ints",
        kinds.FLOATS: "floats",
        kinds.STRINGS: "strings",
    }
    field = fields.get(kind)
    if kind == kinds.TENSOR:
        return decode_tensor(attribute.t, model.external)
    if kind == kinds.GRAPH:
        return Body(model, attribute.g, scope)
    if field is None or attribute.ref_attr_name:
        raise UnsupportedError(
            f"attribute {attribute.name} is of a kind that is not supported",
            expected="numbers, text, a tensor or a graph",
            found=kinds.AttributeType.Name(kind).lower(),
        )
    value = getattr(attribute, field)
    if field == "s":
        return value.decode("utf-8", "replace")
    if field == "strings":
        return tuple(text.decode("utf-8", "replace") for text in value)
    return value if field in ("i", "f") else tuple(value)
