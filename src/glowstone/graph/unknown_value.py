"""Which inputs a value follows from that the host had to know and does not."""

from __future__ import annotations

from glowstone.graph.graph import Value


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
