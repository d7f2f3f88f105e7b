"""If: a branch whose condition is known becomes a part of the graph around; else both become bodies."""

from __future__ import annotations

from collections.abc import Sequence

from glowstone.errors import ModelError, ShapeError, UnknownValueError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.scope import Scope, capture
from glowstone.ops import If
from glowstone.ops.control import untaken
from glowstone.types import ElementType


@imports("If")
def import_if(node: OnnxNode) -> tuple[Value, ...]:
    condition = node.operand(0)
    if condition.type.size != 1 or condition.element is not ElementType.BOOL:
        raise ModelError("the condition is no single bool", expected="bool[]", found=condition.type)
    branches = [node.body(name) for name in ("then_branch", "else_branch")]
    if any(branch.input_names for branch in branches):
        raise ModelError("a branch has inputs of its own", expected="none")
    if condition.known is not None:
        truth = bool(condition.known)
        if condition.dynamic:
            node.builder.graph.assume(condition, truth)
        return branches[0 if truth else 1].inline()
    try:
        bodies = [branch.build(()) for branch in branches]
    except UnknownValueError:
        raise
    except (ShapeError, ModelError) as error:  # one branch does not fit the shapes: which one is taken decides them
        raise untaken(condition) from error
    captured = _shared_captures(bodies)
    operator = If(*(body.builder.graph for body in bodies))
    return node.builder.emit_node(operator, condition, *captured).results


def _shared_captures(bodies: Sequence[Scope]) -> list[Value]:
    """What any of the bodies captured; all take it, in one order."""
    captured = list(dict.fromkeys(value for body in bodies for value in body.captured))
    for body in bodies:
        graph = body.builder.graph
        inputs = [
            body.captured[value] if value in body.captured else capture(graph, f"unused_{index}", value)
            for index, value in enumerate(captured)
        ]
        graph.inputs[:] = inputs
        graph.dimensions[:] = [value.shape for value in inputs]
    return captured
