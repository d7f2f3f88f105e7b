"""Node order for least memory.

In: a graph. Out: its nodes in an order that respects operands. Candidates are compared by the largest sum of live
bytes; the order from the outputs back is one of them, so the result is never worse than that.
"""

from __future__ import annotations

import heapq

from glowstone.graph import Graph, Node, Value


def schedule(graph: Graph) -> list[Node]:
    """The better of the graph's own order and a greedy one."""
    order = graph.nodes
    candidates = [order, _greedy(graph, order)]
    return min(candidates, key=lambda nodes: peak_bytes(graph, nodes))


def peak_bytes(graph: Graph, order: list[Node]) -> int:
    """Largest sum of bytes of values alive at once, every value in its own memory."""
    remaining = {value: len(value.users()) for node in order for value in node.results}
    live = peak = 0
    for node in order:
        live += sum(_bytes(value) for value in node.results)
        peak = max(peak, live)
        for operand in dict.fromkeys(node.present_operands()):
            if operand in remaining:
                remaining[operand] -= 1
                if remaining[operand] == 0 and not graph.is_output(operand):
                    live -= _bytes(operand)
        live -= sum(_bytes(value) for value in node.results if not value.uses and not graph.is_output(value))
    return peak


def _bytes(value: Value) -> int:
    """Memory of its own that a value takes: none where the host knows it or it only views its operand."""
    if value.known is not None or value.operator is None or value.operator.moves_no_data:
        return 0
    return value.type.bytes


def _greedy(graph: Graph, order: list[Node]) -> list[Node]:
    """Always the ready node that leaves the least memory taken; ties in the graph's own order."""
    position = {node: index for index, node in enumerate(order)}
    waiting = {
        node: len({operand.node for operand in node.present_operands() if operand.node is not None}) for node in order
    }
    remaining = {value: len(value.users()) for node in order for value in node.results}
    ready = [node for node in order if waiting[node] == 0]
    result: list[Node] = []

    def growth(node: Node) -> int:
        freed = sum(
            _bytes(operand)
            for operand in dict.fromkeys(node.present_operands())
            if remaining.get(operand) == 1 and not graph.is_output(operand)
        )
        return sum(_bytes(value) for value in node.results) - freed

    heap = [(growth(node), position[node], node) for node in ready]
    heapq.heapify(heap)
    while heap:
        estimate, place, node = heapq.heappop(heap)
        current = growth(node)
        if current != estimate:
            heapq.heappush(heap, (current, place, node))
            continue
        result.append(node)
        for operand in dict.fromkeys(node.present_operands()):
            if operand in remaining:
                remaining[operand] -= 1
        for user in dict.fromkeys(user for value in node.results for user in value.users()):
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(heap, (growth(user), position[user], user))
    return result
