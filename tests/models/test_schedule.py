"""The scheduled order needs no more memory than the order of the nodes in the ONNX file."""

from __future__ import annotations

import heapq

import onnx
import pytest

from glowstone import importer
from glowstone.backends.cpu.backend import CpuBackend
from glowstone.backends.cpu.target import Target
from glowstone.compiler import Settings, Template, compile_template, plan_shape


def file_order(template: Template, path: str) -> tuple[int, ...]:
    """Positions of the template's nodes in the order of the file; a fused node stands where its last part stood."""
    place = {node.name or node.output[0]: index for index, node in enumerate(onnx.load(path).graph.node)}
    nodes = template.graph.nodes
    position = {node: index for index, node in enumerate(nodes)}
    waiting = {
        node: len({operand.node for operand in node.present_operands() if operand.node is not None}) for node in nodes
    }

    def entry(node):
        return max((place.get(name, -1) for name in node.names), default=-1), position[node], node

    ready = [entry(node) for node in nodes if waiting[node] == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, index, node = heapq.heappop(ready)
        order.append(index)
        for user in dict.fromkeys(user for value in node.results for user in value.users()):
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, entry(user))
    return tuple(order)


@pytest.mark.parametrize("model", ["recognizer_path", "encoder_path", "resnet_path"])
def test_the_schedule_is_no_worse_than_the_file(model, request):
    path = str(request.getfixturevalue(model))
    settings = Settings(CpuBackend(Target.host()))
    source = importer.import_model(importer.open_model(path))
    template = compile_template(source, {value.name: value.shape for value in source.inputs}, settings)
    scheduled = plan_shape(template, None, settings).memory
    template.order = file_order(template, path)
    original = plan_shape(template, None, settings).memory
    assert scheduled.bound <= original.bound
    assert scheduled.arena_bytes <= 1.01 * scheduled.bound
