"""Constants of few bits are packed, and computed from what they were packed into."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

import glowstone
from glowstone.graph import Builder, Graph, evaluate_graph, verify_graph
from glowstone.graph_passes.pack_narrow_constants import SMALLEST, pack_narrow_constants
from glowstone.ops import Constant
from glowstone.ops.constant import constant
from glowstone.types import ElementType

PACKED = [element for element in ElementType if element.bits in (2, 4)]


def codes(element, *shape):
    bits = np.random.default_rng(5).integers(0, 256, shape, np.uint8)  # what is above the element's bits is nothing
    return bits.view(element.dtype)


def graph_of(array):
    graph = Graph("constant")
    graph.add_output("y", constant(Builder(graph), array))
    return graph


@pytest.mark.parametrize("shape", [(SMALLEST,), (7, 53), (19, 3, 11)], ids=str)
@pytest.mark.parametrize("element", PACKED, ids=str)
def test_packed_constants_mean_the_same(element, shape):
    array = codes(element, *shape)
    graph = graph_of(array)
    assert pack_narrow_constants(graph)
    verify_graph(graph)
    (found,) = evaluate_graph(graph, {}).values()
    assert found.dtype == array.dtype
    mask = (1 << element.bits) - 1
    np.testing.assert_array_equal(found.view(np.uint8) & mask, array.view(np.uint8) & mask)
    held = [node.operator.tensor for node in graph.nodes if isinstance(node.operator, Constant)]
    data = sum(tensor.array.nbytes for tensor in held if tensor.element is ElementType.U8)
    assert data <= -(-array.size * element.bits // 8) + 4


@pytest.mark.parametrize("element", [ElementType.I8, ElementType.F8E5M2, ElementType.F6E2M3], ids=str)
def test_whole_bytes_stay(element):
    assert not pack_narrow_constants(graph_of(np.ones((SMALLEST, 2), element.dtype)))


def test_small_and_repeated_constants_stay():
    element = ElementType.I4
    assert not pack_narrow_constants(graph_of(codes(element, SMALLEST - 1)))
    assert not pack_narrow_constants(graph_of(np.broadcast_to(codes(element, 1), (SMALLEST, 2))))


@pytest.mark.parametrize("element", PACKED, ids=str)
def test_a_compiled_model(element):
    """A table of which an input says where to cut it."""
    array = (codes(element, 41, 13).view(np.uint8) & ((1 << element.bits) - 1)).view(element.dtype)
    number = helper.np_dtype_to_tensor_dtype(element.dtype)
    nodes = [helper.make_node("Gather", ["c", "rows"], ["part"]), helper.make_node("Cast", ["part"], ["y"], to=1)]
    rows = helper.make_tensor_value_info("rows", helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)), [3])
    y = helper.make_tensor_value_info("y", 1, [3, 13])
    graph = helper.make_graph(nodes, "table", [rows], [y], [numpy_helper.from_array(array, "c")])
    assert graph.initializer[0].data_type == number
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
    chosen = np.array([40, 0, 17])
    found = glowstone.compile(made)(chosen)
    np.testing.assert_array_equal(found, array[chosen].astype(np.float32))
