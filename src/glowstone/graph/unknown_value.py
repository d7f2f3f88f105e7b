"""The error for a value that the host had to know and does not."""

from __future__ import annotations

from glowstone.errors import ShapeError
from glowstone.graph.graph import Value


class UnknownValueError(ShapeError):
    """A value that decides a shape depends on data that arrives with a call.

    `inputs` names the graph inputs it follows from by arithmetic the host can do, once the importer has found them.
    """

    def __init__(self, name: str, value: Value) -> None:
        super().__init__(
            f"operand {name} depends on input data",
            expected="a value that follows from shapes and constants",
            remedy="fix the input it depends on with constants={...}",
        )
        self.value = value
        self.inputs: tuple[str, ...] = ()


def deciding_inputs(value: Value, most_elements: int) -> tuple[str, ...]:
    """The graph inputs that a value follows from; none where one of them has more elements or more than one axis."""
    found: dict[str, None] = {}
    seen: set[Value] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current in seen or current.known is not None:
            continue
        seen.add(current)
        if current.node is not None:
            stack.extend(current.node.present_operands())
        elif current.rank > 1 or current.type.size > most_elements:
            return ()
        else:
            found[current.name] = None
    return tuple(sorted(found))
