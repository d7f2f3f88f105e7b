"""Model-local functions: each call is replaced by the function's nodes, with names of their own.

How large the model becomes is computed before anything is copied: functions that call functions grow exponentially.
ONNX IR, "Functions" (from IR version 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glowstone.errors import ModelError
from glowstone.importer.bodies import bodies_of
from glowstone.importer.registry import canonical_domain
from glowstone.support.budget import Budget, exceeded

OPSETS_KEY = "glowstone.opset"
"""Of a node's metadata: the opset of the node's domain, where it is that of a function and not that of the model."""
MOST_DIGITS = 18
Key = tuple[str, str, str]
"""Domain, name and overload."""


def expand_functions(proto: Any, budget: Budget) -> None:
    """Replace every call of a model-local function, in place; afterwards the model has no functions.

    Raises:
        ModelError: a function calls itself, is there twice, or a call does not fit it.
        LimitError: the model would become larger, or calls are nested deeper, than the options allow.
    """
    if not proto.functions:
        return
    functions = _functions(proto)
    sizes = _Sizes(functions, budget)
    total = sizes.of_nodes(proto.graph.node, ())
    if total.nodes > budget.options.node_limit:
        raise exceeded(
            "node_limit", "the model's functions expand to too many nodes", budget.options.node_limit, total.nodes
        )
    if total.bytes > budget.options.function_byte_limit:
        limit = budget.options.function_byte_limit
        raise exceeded("function_byte_limit", "the model's functions expand to too many bytes", limit, total.bytes)
    _Expander(functions, _opsets(proto.opset_import), budget).expand(proto.graph)
    del proto.functions[:]


def _functions(proto: Any) -> dict[Key, Any]:
    functions: dict[Key, Any] = {}
    for function in proto.functions:
        key = (canonical_domain(function.domain), function.name, function.overload)
        if key in functions:
            raise ModelError("a function is there twice", expected="distinct names", found=".".join(map(str, key)))
        functions[key] = function
    return functions


def _key(node: Any) -> Key:
    return canonical_domain(node.domain), node.op_type, node.overload


def _opsets(entries: Iterable[Any]) -> dict[str, int]:
    return {canonical_domain(entry.domain): int(entry.version) for entry in entries}


def noted_opset(node: Any) -> int | None:
    """The opset that a node of a function has; None where it is the model's."""
    for entry in node.metadata_props:
        if entry.key == OPSETS_KEY and entry.value.isdecimal():
            return int(entry.value[:MOST_DIGITS])
    return None


@dataclass(frozen=True)
class _Size:
    nodes: int = 0
    bytes: int = 0

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.nodes + other.nodes, self.bytes + other.bytes)


class _Sizes:
    """How large nodes are when all calls in them are expanded."""

    def __init__(self, functions: Mapping[Key, Any], budget: Budget) -> None:
        self._functions = functions
        self._budget = budget
        self._found: dict[Key, _Size] = {}

    def of_nodes(self, nodes: Iterable[Any], calls: tuple[Key, ...]) -> _Size:
        """`calls` are the functions that the nodes are in, the outermost first."""
        total = _Size()
        for node in nodes:
            self._budget.tick()
            key = _key(node)
            inside = self._of_call(key, calls) if key in self._functions else _Size(1)
            total += inside + _Size(0, node.ByteSize() if calls else 0)
            for body in bodies_of(node):
                total += self.of_nodes(body.node, calls)
        return total

    def _of_call(self, key: Key, calls: tuple[Key, ...]) -> _Size:
        if key in calls:
            raise ModelError(
                "a function calls itself", operator=key[1], found=" in ".join(name for _, name, _ in calls)
            )
        limit = self._budget.options.nesting_limit
        if len(calls) >= limit:
            raise exceeded("nesting_limit", "calls of functions are nested too deep", limit, len(calls) + 1)
        if key not in self._found:
            self._found[key] = self.of_nodes(self._functions[key].node, (*calls, key))
        return self._found[key]


class _Expander:
    """Writes nodes anew. No call is recursive, and none is nested too deep: `_Sizes` has seen them all."""

    def __init__(self, functions: Mapping[Key, Any], opsets: Mapping[str, int], budget: Budget) -> None:
        self._functions = functions
        self._opsets = opsets
        self._budget = budget
        self._count = 0

    def expand(self, graph: Any) -> None:
        """Replace the calls in a graph and its bodies."""
        if not any(_key(node) in self._functions for node in graph.node):
            for node in graph.node:
                for body in bodies_of(node):
                    self.expand(body)
            return
        nodes = list(self._expanded(graph.node))
        copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)

    def _expanded(self, nodes: Iterable[Any]) -> Iterable[Any]:
        for node in nodes:
            self._budget.tick()
            function = self._functions.get(_key(node))
            if function is None:
                for body in bodies_of(node):
                    self.expand(body)
                yield node
            else:
                yield from self._expanded(self._body(node, function))

    def _body(self, call: Any, function: Any) -> list[Any]:
        """The nodes of a function as those of one call."""
        self._count += 1
        names = _Names(call, function, self._count)
        attributes = {attribute.name: attribute for attribute in function.attribute_proto}
        attributes.update((attribute.name, attribute) for attribute in call.attribute)
        opsets = {**self._opsets, **_opsets(function.opset_import)}
        nodes = []
        for original in function.node:
            node = type(original)()
            node.CopyFrom(original)
            node.name = f"{names.prefix}{node.name or node.op_type}"
            _rewrite(node, names, attributes)
            self._note_opsets(node, opsets)
            nodes.append(node)
        return [*nodes, *names.passed_through(type(call))]

    def _note_opsets(self, node: Any, opsets: Mapping[str, int]) -> None:
        """Let a node, and those in its bodies, remember the function's opset where it is another than the model's."""
        domain = canonical_domain(node.domain)
        if noted_opset(node) is None and domain in opsets and opsets[domain] != self._opsets.get(domain):
            node.metadata_props.add(key=OPSETS_KEY, value=str(opsets[domain]))
        for body in bodies_of(node):
            for inner in body.node:
                self._note_opsets(inner, opsets)


class _Names:
    """What the names in a function become where it is called."""

    def __init__(self, call: Any, function: Any, number: int) -> None:
        if len(call.input) > len(function.input) or len(call.output) > len(function.output):
            raise ModelError(
                "a call does not fit its function",
                node=call.name or None,
                operator=call.op_type,
                expected=f"at most {len(function.input)} operands and {len(function.output)} results",
                found=f"{len(call.input)} and {len(call.output)}",
            )
        self.prefix = f"{call.name or call.op_type}.{number}/"
        given = (*call.input, *[""] * (len(function.input) - len(call.input)))
        self._known: dict[str, str] = {"": "", **dict(zip(function.input, given, strict=True))}
        self._aliases: list[tuple[str, str]] = []
        for inner, outer in zip(function.output, call.output, strict=False):
            if not outer:
                continue
            if inner in self._known:  # an operand, or a result that is there already
                self._aliases.append((self._known[inner], outer))
            else:
                self._known[inner] = outer

    def __call__(self, name: str) -> str:
        return self._known.setdefault(name, f"{self.prefix}{name}")

    def passed_through(self, node_type: Any) -> list[Any]:
        """Nodes for results that are operands as they are."""
        return [node_type(op_type="Identity", input=[inner], output=[outer]) for inner, outer in self._aliases]


def _rewrite(node: Any, names: _Names, attributes: Mapping[str, Any]) -> None:
    """Give a node of a function the names and attributes of a call, its bodies included."""
    node.input[:] = [names(name) for name in node.input]
    node.output[:] = [names(name) for name in node.output]
    _fill_attributes(node, attributes)
    for body in bodies_of(node):
        for entries in (body.input, body.output, body.initializer, body.value_info):
            for entry in entries:
                entry.name = names(entry.name)
        for inner in body.node:
            _rewrite(inner, names, attributes)


def _fill_attributes(node: Any, attributes: Mapping[str, Any]) -> None:
    """Put the call's attributes in the places that refer to them; one that is not given is left out."""
    filled: list[Any] = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            filled.append(attribute)
        elif attribute.ref_attr_name in attributes:
            copy = type(attribute)()
            copy.CopyFrom(attributes[attribute.ref_attr_name])
            copy.name = attribute.name
            filled.append(copy)
    if len(filled) < len(node.attribute) or any(attribute.ref_attr_name for attribute in node.attribute):
        copies: Sequence[Any] = [type(entry).FromString(entry.SerializeToString()) for entry in filled]
        del node.attribute[:]
        node.attribute.extend(copies)
