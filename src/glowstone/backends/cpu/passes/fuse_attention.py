"""Makes one node of the product of queries and keys, the softmax of it, and the product of that with values."""

from __future__ import annotations

from glowstone.backends.cpu.ops import FusedAttention
from glowstone.graph import Builder, Graph, Node
from glowstone.ops import Fused, MatMul, Softmax
from glowstone.types import ElementType, normalize_axis

LEAST_RANK = 2


def fuse_attention(graph: Graph) -> bool:
    """Fuse every softmax along the last axis between two products that nothing else reads."""
    changed = False
    for node in graph.nodes:
        if isinstance(node.operator, Softmax):
            changed = _fuse(graph, node) or changed
    if changed:
        graph.drop_dead_uses()
    return changed


def _fuse(graph: Graph, softmax: Node) -> bool:
    scores = softmax.operands[0]
    assert scores is not None
    assert isinstance(softmax.operator, Softmax)
    first = scores.node
    is_last_axis = normalize_axis(softmax.operator.axis, scores.rank) == scores.rank - 1 if scores.rank else False
    users = softmax.result.users()
    if first is None or not is_last_axis or len(users) != 1 or not _is_private(graph, softmax, first):
        return False
    (second,) = users
    anchor = first.operator.anchor if isinstance(first.operator, Fused) else first.operator
    if not isinstance(anchor, MatMul) or not isinstance(second.operator, MatMul):
        return False
    q, k, *extras = first.operands
    weights, v = second.operands
    if weights is not softmax.result or v is softmax.result or q is None or k is None or v is None:
        return False
    values = [q, k, v, *extras]
    if any(value is None or value.element is not ElementType.F32 for value in values):
        return False
    fits = min(q.rank, k.rank, v.rank) >= LEAST_RANK and second.result.shape[:-2] == scores.shape[:-2]
    if not fits or scores.element is not ElementType.F32:
        return False
    epilogue = first.operator.epilogue if isinstance(first.operator, Fused) else None
    names = tuple(dict.fromkeys((*first.names, *softmax.names, *second.names)))
    graph.replace(second.result, Builder(graph, names).emit(FusedAttention(epilogue), *values))
    return True


def _is_private(graph: Graph, softmax: Node, first: Node) -> bool:
    """Whether scores and weights are read along the way alone."""
    inner = (first.results[0], softmax.result)
    return len(first.results) == 1 and all(graph.has_single_use(value) for value in inner)
