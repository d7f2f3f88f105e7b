"""Reads the text form of graphs (see `printer.py`).

In: text, and the constants that it only names. Out: a graph, made by the builder, so every type is inferred again and
compared with the text. Only operators that have been imported are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from glowstone.errors import GlowstoneError
from glowstone.graph.builder import Builder
from glowstone.graph.graph import Graph, Node, Value
from glowstone.graph.operator import OPERATORS, Operator
from glowstone.graph.printer import DIGEST_DIGITS, GRAPH_TEXT_VERSION, HEADER, LEFT_OUT
from glowstone.graph.tensor import Tensor
from glowstone.text import Scanner, field_types, parse_value
from glowstone.types import Dimension, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Made = TypeVar("Made")


def parse_graph(text: str, tensors: Mapping[str, Tensor] | None = None) -> Graph:
    """The inverse of `print_graph`.

    Args:
        text: the text form.
        tensors: constants by printed digest, such as `named_tensors` of the printed graph.

    Raises:
        ParseError: the text is not a graph of this version, an operator refuses its operands, a printed type is not
            the inferred one, or a constant is missing. The message begins with line and column.
    """
    return _Parser(Scanner(text), tensors or {}).graph()


class _Parser:
    """Reads one graph; a body is read by a parser of its own, from the same scanner."""

    def __init__(self, scanner: Scanner, tensors: Mapping[str, Tensor]) -> None:
        self._scanner = scanner
        self._tensors = tensors
        self._values: dict[int | str, Value] = {}
        self._readers = {Tensor: self._tensor, Operator: self._operator, Graph: self._body}
        self._graph = Graph()
        self._builder = Builder(self._graph)

    def graph(self) -> Graph:
        """A whole text."""
        scanner = self._scanner
        scanner.expect(HEADER)
        version = scanner.word()
        if version != str(GRAPH_TEXT_VERSION):
            raise scanner.error(f"text of version {version}; this is version {GRAPH_TEXT_VERSION}")
        self._content()
        if not scanner.at_end:
            raise scanner.error("text after the graph")
        return self._graph

    def body(self) -> Graph:
        """A graph in braces."""
        self._scanner.expect("{")
        self._content()
        self._scanner.expect("}")
        return self._graph

    def _body(self, scanner: Scanner) -> Graph:
        return _Parser(scanner, self._tensors).body()

    def _content(self) -> None:
        scanner = self._scanner
        if scanner.is_next('"'):
            self._graph.name = scanner.string()
        while scanner.accept("input"):
            self._input()
        while scanner.is_next("%"):
            self._node()
        while scanner.accept("output"):
            self._output()
        while scanner.accept("assume"):
            self._assumption()

    def _input(self) -> None:
        scanner = self._scanner
        key = self._key()
        if not isinstance(key, str) or key in self._values:
            raise scanner.error(f"not a new name for an input: {key}")
        scanner.expect(":")
        type = scanner.tensor_type()
        value = self._values[key] = self._graph.add_input(key, type, self._dimensions(type))
        if scanner.accept("="):
            known = self._tensor(scanner)
            if known.type != type:
                raise scanner.error(f"a value of type {known.type} for {type}")
            value.known = known.array

    def _output(self) -> None:
        scanner = self._scanner
        name = scanner.name()
        if name in self._graph.output_names:
            raise scanner.error(f"second output of name {name}")
        scanner.expect("=")
        value = self._value()
        self._graph.add_output(name, value, self._dimensions(value.type))

    def _assumption(self) -> None:
        condition = self._value()
        self._scanner.expect("=")
        truth = bool(parse_value(self._scanner, bool))
        try:
            self._graph.assume(condition, truth)
        except GlowstoneError as error:
            raise self._scanner.error(f"an assumption that does not hold: {error}") from error

    def _dimensions(self, type: TensorType) -> tuple[Dimension, ...]:
        scanner = self._scanner
        if not scanner.is_next("("):
            return type.shape
        dimensions: Any = parse_value(scanner, tuple[int | str, ...])
        if len(dimensions) != type.rank:
            raise scanner.error(f"{len(dimensions)} dimensions for {type}")
        return tuple(dimensions)

    def _node(self) -> None:
        scanner = self._scanner
        keys = [self._key()]
        while scanner.accept(","):
            keys.append(self._key())
        scanner.expect("=")
        operator = self._operator(scanner)
        operands = self._operands()
        made = self._emit(operator, operands)
        self._check_types(made)
        names = []
        while scanner.is_next('"'):
            names.append(scanner.string())
        made.names = tuple(names)
        for key, result in zip(keys, made.results, strict=False):
            if key != len(self._values) - len(self._graph.inputs):
                raise scanner.error(f"result %{key} out of order")
            self._values[key] = result
        if len(keys) != len(made.results):
            raise scanner.error(f"{len(keys)} results; {operator.name} has {len(made.results)}")

    def _emit(self, operator: Operator, operands: list[Value | None]) -> Node:
        try:
            return self._builder.emit_node(operator, *operands)
        except GlowstoneError as error:
            raise self._scanner.error(f"{operator.name} refuses its operands: {error}") from error

    def _check_types(self, node: Node) -> None:
        scanner = self._scanner
        scanner.expect(":")
        for index, result in enumerate(node.results):
            if index:
                scanner.expect(",")
            written = scanner.tensor_type()
            if written != result.type:
                raise scanner.error(f"a result of type {written}; inferred is {result.type}")

    def _operator(self, scanner: Scanner) -> Operator:
        kind: type[Operator] = scanner.convert(scanner.word(), _operator_class)
        hints = field_types(kind)
        values: dict[str, object] = {}
        if scanner.accept("{"):
            while not values or not scanner.accept("}"):
                if values:
                    scanner.expect(",")
                name = scanner.word()
                if name not in hints or name in values:
                    raise scanner.error(f"{kind.__name__} has no such field, or twice: {name}")
                scanner.expect("=")
                values[name] = parse_value(scanner, hints[name], self._readers)
        return scanner.convert("", lambda _: kind(**values))

    def _operands(self) -> list[Value | None]:
        scanner = self._scanner
        operands: list[Value | None] = []
        scanner.expect("(")
        while not scanner.accept(")"):
            if operands:
                scanner.expect(",")
            operands.append(None if scanner.accept(LEFT_OUT) else self._value())
        return operands

    def _value(self) -> Value:
        key = self._key()
        if key not in self._values:
            raise self._scanner.error(f"no value %{key} before")
        return self._values[key]

    def _key(self) -> int | str:
        """The number of a result, or the name of an input."""
        scanner = self._scanner
        scanner.expect("%")
        quoted = scanner.is_next('"')
        name = scanner.name()
        return int(name) if name.isdecimal() and not quoted else name

    def _tensor(self, scanner: Scanner) -> Tensor:
        type = scanner.tensor_type()
        scanner.expect("{")
        if scanner.accept("sha256"):
            tensor = self._named_tensor(type)
        elif scanner.accept("splat"):
            tensor = Tensor(np.broadcast_to(self._elements(type, 1).reshape(()), type.shape), type.element)
        else:
            tensor = Tensor(self._elements(type, type.size).reshape(type.shape), type.element)
        scanner.expect("}")
        return tensor

    def _named_tensor(self, type: TensorType) -> Tensor:
        digest = self._scanner.word()
        tensor = self._tensors.get(digest)
        if tensor is None:
            raise self._scanner.error("a constant that is not among the tensors given")
        if tensor.type != type or tensor.digest[:DIGEST_DIGITS] != digest:
            raise self._scanner.error(f"a constant of another content: {tensor.type}")
        return tensor

    def _elements(self, type: TensorType, count: int) -> Array:
        scanner = self._scanner
        dtype = type.element.dtype
        if scanner.accept("hex"):
            flat = np.frombuffer(scanner.convert(scanner.word(), bytes.fromhex), np.uint8)
            if flat.size != count * dtype.itemsize:
                raise scanner.error(f"{flat.size} bytes for {count} elements of {type.element}")
            return flat.view(dtype.newbyteorder("<")).astype(dtype)
        wide = type.element.wide
        kind = float if wide.is_float else int if wide.is_integer else bool
        numbers: list[object] = []
        while not scanner.is_next("}"):
            if numbers:
                scanner.expect(",")
            numbers.append(parse_value(scanner, kind))
        if len(numbers) != count:
            raise scanner.error(f"{len(numbers)} elements, not {count}")
        return scanner.convert("", lambda _: np.array(numbers, dtype))


def _operator_class(name: str) -> type[Operator]:
    if name not in OPERATORS:
        raise ValueError(f"unknown operator {name}")
    return OPERATORS[name]
