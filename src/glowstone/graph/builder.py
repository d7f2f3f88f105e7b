"""The builder: the only way to make nodes. It checks operands, infers types, and computes what the host can know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glowstone.errors import ExecutionError, GlowstoneError, ModelError
from glowstone.graph.graph import Graph, Node, Value
from glowstone.graph.operator import KNOWN_ELEMENTS_LIMIT, Array, Operator
from glowstone.support.budget import tick
from glowstone.types import TensorType, check_size


class Builder:
    """Emits nodes into a graph. `names` are the ONNX names that the next nodes come from."""

    def __init__(self, graph: Graph, names: tuple[str, ...] = ()) -> None:
        self.graph = graph
        self.names = names

    def emit(self, operator: Operator, *operands: Value | None) -> Value:
        """A new node with one result; returns that.

        Raises:
            GlowstoneError: operands that do not fit, with node and operator filled in.
        """
        return self.emit_node(operator, *operands).results[0]

    def emit_node(self, operator: Operator, *operands: Value | None) -> Node:
        """A new node with any number of results.

        Raises:
            GlowstoneError: operands that do not fit, with node and operator filled in.
        """
        tick()
        while operands and operands[-1] is None:
            operands = operands[:-1]
        try:
            operator.check_operands(operands)
            operator = operator.specialized(operands)
            types = operator.infer(*operands)  # type: ignore[arg-type]
            for type in types:
                check_size(type)
        except GlowstoneError as error:
            raise error.with_context(node=self.names[0] if self.names else None, operator=operator.name) from None
        node = Node(operator, operands, types, self.names)
        dynamic = False
        for index, operand in enumerate(operands):
            if operand is not None:
                operand.uses[node, index] = None
                dynamic = dynamic or operand.dynamic
        known = self._known(operator, operands, types)
        for index, result in enumerate(node.results):
            result.dynamic = dynamic
            if known is not None:
                result.known = known[index]
        return node

    def _known(
        self, operator: Operator, operands: tuple[Value | None, ...], types: tuple[TensorType, ...]
    ) -> tuple[Array | None, ...] | None:
        """What the host can compute of the results."""
        if not operator.bodies and any(type.size > KNOWN_ELEMENTS_LIMIT for type in types):
            return None  # bodies compute nothing here: what is known in them is small
        try:
            return operator.known(*operands)
        except ExecutionError as error:  # known before any run, so it is the model's fault
            refused = ModelError(error.message, expected=error.expected, found=error.found)
            raise refused.with_context(node=self.names[0] if self.names else None, operator=operator.name) from error


def rebuild(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]] | None = None, known: Mapping[str, Array] | None = None
) -> Graph:
    """A new graph with the same operators, re-inferred from the input shapes given (by input name).

    This is how a template becomes a plan for another shape: the builder and every `infer` run
    as they did the first time. `known` are values of inputs that the host must know.

    Raises:
        GlowstoneError: an operator refuses its operands at these shapes, or an assumption does not hold.
    """
    copy = Graph(graph.name)
    for value, dimensions in zip(graph.inputs, graph.dimensions, strict=True):
        shape = shapes.get(value.name, value.shape) if shapes else value.shape
        made = copy.add_input(value.name, value.type.with_shape(shape), dimensions)
        made.known = (known or {}).get(value.name, value.known)
        made.dynamic = value.dynamic
    outputs = inline(Builder(copy), graph, copy.inputs)
    for name, value, dimensions in zip(graph.output_names, outputs, graph.output_dimensions, strict=True):
        copy.add_output(name, value, dimensions)
    return copy


def rebuild_body(body: Graph, arguments: Sequence[Value]) -> Graph:
    """A body built anew for arguments of other types; what is known of them is known inside.

    Raises:
        GlowstoneError: an operator refuses its operands at these types, or an assumption does not hold.
    """
    copy = Graph(body.name)
    for value, argument in zip(body.inputs, arguments, strict=True):
        made = copy.add_input(value.name, argument.type)
        made.known, made.dynamic = argument.known, argument.dynamic
    for name, value in zip(body.output_names, inline(Builder(copy), body, copy.inputs), strict=True):
        copy.add_output(name, value)
    return copy


def inline(builder: Builder, graph: Graph, arguments: Sequence[Value]) -> tuple[Value, ...]:
    """Emit the nodes of a graph anew, with the arguments for its inputs; returns what its outputs become.

    Raises:
        GlowstoneError: an operator refuses its operands, or an assumption does not hold.
    """
    values: dict[Value, Value] = dict(zip(graph.inputs, arguments, strict=True))
    for node in graph.nodes:
        builder.names = node.names
        operands = [values[operand] if operand is not None else None for operand in node.operands]
        made = builder.emit_node(node.operator, *operands)
        for old, new in zip(node.results, made.results, strict=True):
            new.name = old.name
            values[old] = new
    for condition, truth in graph.assumptions:
        builder.graph.assume(values[condition], truth)
    return tuple(values[output] for output in graph.outputs)
