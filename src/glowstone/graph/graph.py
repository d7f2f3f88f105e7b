"""The high-level representation: values, nodes, and the graph that owns them.

Invariant: a value's uses are exactly the (node, operand index) pairs that name it, plus graph outputs by number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph.operator import Operator
from glowstone.types import Dimension, ElementType, TensorType, check_size

Array = np.ndarray[Any, np.dtype[Any]]


class Value:
    """A tensor that a node computes, or an input of the graph (`node` is None)."""

    __slots__ = ("dynamic", "index", "known", "name", "node", "type", "uses")

    def __init__(self, type: TensorType, node: Node | None = None, index: int = 0, name: str = "") -> None:
        self.type = type
        self.node = node
        self.index = index
        self.name = name
        self.known: Array | None = None
        self.dynamic = False
        self.uses: dict[tuple[Node, int], None] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def element(self) -> ElementType:
        return self.type.element

    @property
    def rank(self) -> int:
        return len(self.type.shape)

    @property
    def operator(self) -> Operator | None:
        """What computes it; None for an input."""
        return self.node.operator if self.node is not None else None

    def users(self) -> list[Node]:
        """The distinct nodes that read it, in order of use."""
        return list(dict.fromkeys(node for node, _ in self.uses))

    def __repr__(self) -> str:
        return f"<Value {self.name or self.operator} {self.type}>"


class Node:
    """An operator applied to values."""

    __slots__ = ("names", "operands", "operator", "results")

    def __init__(
        self, operator: Operator, operands: Sequence[Value | None], types: Iterable[TensorType], names: tuple[str, ...]
    ) -> None:
        self.operator = operator
        self.operands = tuple(operands)
        self.results = tuple(Value(type, self, index) for index, type in enumerate(types))
        self.names = names

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def present_operands(self) -> Iterator[Value]:
        return (operand for operand in self.operands if operand is not None)

    def __repr__(self) -> str:
        return f"<Node {self.operator}>"


class Graph:
    """Inputs, named outputs, and the nodes between them. Nodes that no output needs are not part of it."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.dimensions: list[tuple[Dimension, ...]] = []
        """Per input the declared dimensions: a number, or a symbol (a text) where it is dynamic."""
        self.outputs: list[Value] = []
        self.output_names: list[str] = []
        self.output_dimensions: list[tuple[Dimension, ...]] = []
        self.assumptions: list[tuple[Value, bool]] = []
        """Conditions that follow from shapes, with the value that the graph relies on: of each, only the branch taken
        at the reference shape is part of it."""
        self._roots: Counter[Value] = Counter()
        """How many outputs and assumptions are a value: some graphs have thousands."""
        self._order: tuple[tuple[Value, ...], list[Node]] | None = None
        """Roots and the nodes they need, until an operand changes: most passes change nothing."""

    def add_input(self, name: str, type: TensorType, dimensions: tuple[Dimension, ...] | None = None) -> Value:
        """A new input; it is dynamic where a dimension is a symbol.

        Raises:
            LimitError: no machine can hold it.
        """
        check_size(type)
        value = Value(type, name=name)
        dimensions = dimensions if dimensions is not None else type.shape
        value.dynamic = any(isinstance(dimension, str) for dimension in dimensions)
        self.inputs.append(value)
        self.dimensions.append(dimensions)
        return value

    def add_output(self, name: str, value: Value, dimensions: tuple[Dimension, ...] | None = None) -> None:
        self.outputs.append(value)
        self._roots[value] += 1
        self.output_names.append(name)
        self.output_dimensions.append(dimensions if dimensions is not None else value.shape)

    def assume(self, condition: Value, truth: bool) -> None:
        """Rely on a condition: what is built on holds for the shapes at which the condition has this value.

        Raises:
            ShapeError: it has the other value.
        """
        if condition.known is None or bool(condition.known) is not truth:
            raise ShapeError(
                "a condition on shapes has another value than where the graph was made",
                expected=truth,
                found=None if condition.known is None else bool(condition.known),
            )
        self.assumptions.append((condition, truth))
        self._roots[condition] += 1

    def __repr__(self) -> str:
        return f"<Graph {self.name}>"

    @property
    def nodes(self) -> list[Node]:
        """The nodes that outputs and assumptions need, operands before users, in an order of the structure alone."""
        roots = (*self.outputs, *(condition for condition, _ in self.assumptions))
        if self._order is None or self._order[0] != roots:
            self._order = (roots, self._ordered(roots))
        return list(self._order[1])

    def _ordered(self, roots: tuple[Value, ...]) -> list[Node]:
        order: list[Node] = []
        seen: set[Node] = set()
        for root in roots:
            stack: list[tuple[Node, bool]] = [(root.node, False)] if root.node is not None else []
            while stack:
                node, expanded = stack.pop()
                if expanded:
                    order.append(node)
                elif node not in seen:
                    seen.add(node)
                    stack.append((node, True))
                    stack.extend(
                        (operand.node, False)
                        for operand in reversed(node.operands)
                        if operand is not None and operand.node is not None and operand.node not in seen
                    )
        return order

    def nested(self) -> Iterator[Graph]:
        """The graph, then the bodies of its nodes, at any depth."""
        yield self
        for node in self.nodes:
            for body in node.operator.bodies:
                yield from body.nested()

    def set_operand(self, node: Node, index: int, value: Value) -> None:
        """Make operand `index` of the node another value of the same type."""
        self._order = None
        old = node.operands[index]
        if old is not None:
            old.uses.pop((node, index), None)
        node.operands = (*node.operands[:index], value, *node.operands[index + 1 :])
        value.uses[node, index] = None

    def replace(self, old: Value, new: Value) -> None:
        """Make every user and output of `old` use `new`; `old`'s node is then dead if nothing else holds it."""
        if old is new:
            return
        for node, index in list(old.uses):
            self.set_operand(node, index, new)
        if self.is_output(old):
            self.outputs[:] = [new if output is old else output for output in self.outputs]
            conditions = [(new if condition is old else condition, truth) for condition, truth in self.assumptions]
            self.assumptions = conditions
            self._roots[new] += self._roots.pop(old)
        if not new.name:
            new.name = old.name

    def is_output(self, value: Value) -> bool:
        """Whether something outside of the nodes needs the value: it is an output, or assumed of."""
        return value in self._roots

    def has_single_use(self, value: Value) -> bool:
        """Whether exactly one operand reads the value, and no output is it."""
        return len(value.uses) == 1 and not self.is_output(value)

    def drop_dead_uses(self) -> bool:
        """Forget uses by nodes that are no longer part of the graph; returns whether there were any."""
        nodes = self.nodes
        live = set(nodes)
        changed = False
        values = [*self.inputs, *(value for node in nodes for value in node.results)]
        for value in values:
            dead = [use for use in value.uses if use[0] not in live]
            for use in dead:
                del value.uses[use]
            changed = changed or bool(dead)
        return changed
