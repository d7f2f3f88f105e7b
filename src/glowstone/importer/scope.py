"""Names of the graphs of a file, which may be nested: a body sees the values around it by name.

What a body uses from around it becomes an input of the body's graph, and is *captured*; a constant is copied in.
"""

from __future__ import annotations

from glowstone.errors import UnknownValueError
from glowstone.graph import Builder, Graph, Tensor, Value
from glowstone.importer.imported import Imported
from glowstone.ops import Constant
from glowstone.types import TensorType


class Scope:
    """The names of one graph of the file, and where its nodes are emitted.

    Args:
        builder: of the graph that nodes are emitted into: the one around where a body is made a part of that.
        outer: the scope around, for names that this one does not define.
    """

    def __init__(self, builder: Builder, outer: Scope | None = None) -> None:
        self.builder = builder
        self.outer = outer
        self.captured: dict[Value, Value] = {}
        """Inputs of the graph by the value around it that each stands for."""
        self._values: dict[str, Imported] = {}

    def value(self, name: str) -> Value:
        """The value of a name, which must be a tensor.

        Raises:
            UnknownValueError: it is none, or only a run shows its shape.
        """
        value = self.find(name)
        if not isinstance(value, Value):
            raise UnknownValueError(f"{name!r} is no tensor of a known shape")
        return value

    @property
    def runs_in_steps(self) -> bool:
        """Whether a node that fits no compiled graph can run on the host instead."""
        return self.outer is not None and self.outer.runs_in_steps

    def has(self, name: str) -> bool:
        """Whether the name was defined or found here."""
        return name in self._values

    def define(self, name: str, value: Imported) -> None:
        """Give a value a name, which hides that of the scopes around."""
        self._values[name] = value

    def add_input(self, name: str, type: TensorType, dynamic: bool) -> Value:
        """A new input of the graph of this name."""
        value = self.builder.graph.add_input(name, type)
        value.dynamic = dynamic
        self.define(name, value)
        return value

    def find(self, name: str) -> Imported:
        """The value of a name, here or around."""
        if name not in self._values:
            assert self.outer is not None, f"{name} is not defined"
            self._values[name] = self._here(name, self.outer.find(name))
        return self._values[name]

    def outside(self, value: object) -> Value | None:
        """The one captured value that a value of this graph follows from; None where it is not that simple."""
        sources: set[Value] = set()
        stack = [value] if isinstance(value, Value) else []
        seen = set(stack)
        while stack:
            current = stack.pop()
            if current.node is None:
                sources.add(current)
            else:
                new = [entry for entry in current.node.present_operands() if entry not in seen and entry.known is None]
                seen.update(new)
                stack.extend(new)
        around = [outer for outer, inner in self.captured.items() if inner in sources]
        return around[0] if len(around) == len(sources) == 1 else None

    def _here(self, name: str, value: Imported) -> Imported:
        """A value of the scope around as one of this graph."""
        assert self.outer is not None
        if self.builder.graph is self.outer.builder.graph:
            return value
        if not isinstance(value, Value):
            raise UnknownValueError("a body reads a value from around it that is no tensor")
        if isinstance(value.operator, Constant):
            return self.builder.emit(value.operator)
        if value.known is not None and not value.dynamic:
            return self.builder.emit(Constant(Tensor(value.known, value.element)))
        if value not in self.captured:
            self.captured[value] = capture(self.builder.graph, name, value)
        return self.captured[value]


def capture(body: Graph, name: str, value: Value) -> Value:
    """A new input of a body that stands for a value around it."""
    taken = {entry.name for entry in body.inputs}
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}.{number}"
    entry = body.add_input(unique, value.type)
    entry.known, entry.dynamic = value.known, value.dynamic
    return entry
