"""Moves an elementwise node behind a convolution, matrix product or reduction into it, as its epilogue.

Decided in the graph, where single use and broadcasting are plain. The anchor's result must have the elementwise node's
shape; other operands then broadcast to it. At another shape `Fused.infer` checks that this still holds.
"""

from __future__ import annotations

from glowstone import scalar
from glowstone.backends.cpu.passes.fuse_elementwise import is_fusible
from glowstone.graph import Builder, Graph, Node, Value
from glowstone.ops import Conv, Elementwise, Fused, MatMul, Reduction
from glowstone.ops.constant import literal
from glowstone.scalar import Expression, Input
from glowstone.types import ElementType

ANCHORS = (Conv, MatMul, Reduction)
FUSED_ELEMENT = ElementType.F32
MOST_EXTRAS = 6


def fuse_epilogues(graph: Graph) -> bool:
    """Fuse every elementwise node whose latest operand is an anchor read by nothing else."""
    changed = False
    order = graph.nodes
    position = {node: index for index, node in enumerate(order)}
    for node in order:
        if not is_fusible(node):
            continue
        candidates = [value for value in node.present_operands() if _is_anchor(graph, value, node)]
        if not candidates:
            continue
        anchor = max(candidates, key=lambda value: position.get(value.node, -1) if value.node is not None else -1)
        changed = _fuse(graph, anchor, node) or changed
    if changed:
        graph.drop_dead_uses()
    return changed


def _is_anchor(graph: Graph, value: Value, user: Node) -> bool:
    if value.node is None or not isinstance(value.operator, ANCHORS) or graph.is_output(value):
        return False
    if value.users() != [user] or value.shape != user.result.shape:
        return False
    return value.element is FUSED_ELEMENT and user.result.element is FUSED_ELEMENT


def _fuse(graph: Graph, anchor: Value, node: Node) -> bool:
    assert anchor.node is not None
    assert isinstance(node.operator, Elementwise)
    values = list(node.present_operands())
    extras: list[Value] = []
    inputs = [_epilogue_input(value, anchor, extras) for value in values]
    if len(extras) > MOST_EXTRAS or any(extra.element is not FUSED_ELEMENT for extra in extras):
        return False  # the fast kernels read extra operands of one type only
    expression = node.operator.scalar_expression(tuple(value.element for value in values))
    epilogue = scalar.substitute(expression, inputs)
    operands = anchor.node.operands
    names = tuple(dict.fromkeys((*anchor.node.names, *node.names)))
    operator = Fused(anchor.node.operator, len(operands), epilogue)
    fused = Builder(graph, names).emit(operator, *operands, *extras)
    graph.replace(node.result, fused)
    return True


def _epilogue_input(value: Value, anchor: Value, extras: list[Value]) -> Expression:
    """Input 0 for the anchor, a literal for a short constant number, else an extra operand."""
    if value is anchor:
        return Input(value.element, 0)
    number = literal(value)
    if number is not None:
        return number
    if value not in extras:
        extras.append(value)
    return Input(value.element, 1 + extras.index(value))
