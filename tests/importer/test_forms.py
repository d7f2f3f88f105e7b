"""Valid models in unusual forms: what may be left out, written otherwise, or written as older versions did."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from helpers.blocks import small_convnet, transformer_block
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from glowstone.graph import evaluate_graph, print_graph, rebuild, verify_graph
from glowstone.importer import import_model, open_model
from glowstone.types import ElementType

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def model(
    nodes: list[onnx.NodeProto],
    initializers: tuple[onnx.TensorProto, ...] = (),
    *,
    opset: int = 17,
    ir_version: int = 8,
    more_inputs: tuple[onnx.ValueInfoProto, ...] = (),
) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x, *more_inputs], [y], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def run(proto: onnx.ModelProto, x: np.ndarray = X) -> np.ndarray:
    graph = import_model(open_model(proto), {"x": x.shape})
    verify_graph(graph)
    return evaluate_graph(graph, {"x": x})["y"]


def tensor(name: str, array: object, dtype: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, dtype), name)


def test_initializers_as_constant_nodes_and_the_other_way_round():
    add = helper.make_node("Add", ["x", "c"], ["y"])
    c = np.array([1, 2, 3], np.float32)
    as_initializer = model([add], (tensor("c", c),))
    as_node = model([helper.make_node("Constant", [], ["c"], value=tensor("", c)), add])
    as_numbers = model([helper.make_node("Constant", [], ["c"], value_floats=[1.0, 2.0, 3.0]), add])
    for proto in (as_initializer, as_node, as_numbers):
        np.testing.assert_array_equal(run(proto), X + c)


@pytest.mark.parametrize("ir_version", [3, 8])
def test_initializers_that_are_inputs_too(ir_version):
    c = helper.make_tensor_value_info("c", TensorProto.FLOAT, [3])
    proto = model(
        [helper.make_node("Mul", ["x", "c"], ["y"])], (tensor("c", [1, 2, 3]),), ir_version=ir_version, more_inputs=(c,)
    )
    graph = import_model(open_model(proto))
    assert [value.name for value in graph.inputs] == ["x"]
    np.testing.assert_array_equal(run(proto), X * np.array([1, 2, 3], np.float32))


def test_operands_left_out():
    high = tensor("high", 1.0)
    clip = model([helper.make_node("Clip", ["x", "", "high"], ["y"])], (high,))
    np.testing.assert_array_equal(run(clip), np.minimum(X, 1))
    trailing = model([helper.make_node("Clip", ["x", "high", ""], ["y"])], (high,))
    np.testing.assert_array_equal(run(trailing), np.maximum(X, 1))
    neither = model([helper.make_node("Clip", ["x", "", ""], ["y"])])
    np.testing.assert_array_equal(run(neither), X)


def test_results_left_out():
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], ["planes"]),
        helper.make_node("MaxPool", ["planes"], ["y", ""], kernel_shape=[3]),
    ]
    np.testing.assert_array_equal(run(model(nodes, (tensor("axis", [0], np.int64),))), X.max(1, keepdims=True)[None])


def test_names_are_kept():
    proto = model([helper.make_node("Add", ["x", "c"], ["y"], name="the sum")], (tensor("c", [1, 2, 3]),))
    graph = import_model(open_model(proto))
    assert [node.names for node in graph.nodes] == [("c",), ("the sum",)]
    assert graph.outputs[0].name == "y"


def test_dimensions():
    proto = model([helper.make_node("Relu", ["x"], ["y"])])
    for value, expected in (("width", "width"), (None, "x_dim_0"), (-1, "x_dim_0"), (4, 4), (0, 0), ("?", "x_dim_0")):
        dim = proto.graph.input[0].type.tensor_type.shape.dim[0]
        dim.Clear()
        if isinstance(value, str):
            dim.dim_param = value
        elif value is not None:
            dim.dim_value = value
        graph = import_model(open_model(proto))
        assert graph.dimensions == [(expected, 3)]
        assert graph.inputs[0].dynamic == isinstance(expected, str)


def test_equal_symbols_get_equal_extents():
    other = helper.make_tensor_value_info("z", TensorProto.FLOAT, ["m", "n"])
    proto = model([helper.make_node("MatMul", ["z", "x"], ["y"])], more_inputs=(other,))
    graph = import_model(open_model(proto), {"x": (7, 3)})
    assert [value.shape[-2:] for value in graph.inputs] == [(7, 3), (1, 7)]


def test_fixed_inputs():
    length = helper.make_tensor_value_info("length", TensorProto.INT64, [1])
    proto = model([helper.make_node("Expand", ["x", "length"], ["y"])], more_inputs=(length,))
    graph = import_model(open_model(proto), {"x": (1, 3)}, {"length": np.array([1])})
    assert [value.name for value in graph.inputs] == ["x"]
    narrow = import_model(open_model(proto), {"x": (1, 3)}, {"length": np.array([1], np.int32)})
    assert print_graph(narrow) == print_graph(graph)


@pytest.mark.parametrize("element", ElementType, ids=str)
def test_typed_and_raw_data_of_every_element_type(element):
    numbers = {True: [0.5, -1.5, 65280.0]}.get(element.is_float, [0, 1, 100])
    if element.wide.is_integer:
        numbers = [*element.limits, 1]
    elif element.is_narrow:
        numbers = [0.5, 1.0, 4.0]
    array = np.array(numbers, element.dtype)
    number = helper.np_dtype_to_tensor_dtype(array.dtype)
    typed = helper.make_tensor("c", number, [3], array if element is ElementType.F16 else array.tolist())
    raw = numpy_helper.from_array(array, "c")
    for proto in (typed, raw):
        made = model([helper.make_node("Identity", ["c"], ["y"])], (proto,))
        made.graph.output[0].type.tensor_type.elem_type = number
        graph = import_model(open_model(made))
        found = evaluate_graph(graph, {"x": X})["y"]
        assert found.dtype == element.dtype
        np.testing.assert_array_equal(found, array)


OLD_FORMS = [
    (7, helper.make_node("BatchNormalization", ["x3", "s", "s", "s", "v"], ["y"], epsilon=1e-3)),
    (6 + 1, helper.make_node("Clip", ["x"], ["y"], min=-1.0, max=0.5)),
    (9, helper.make_node("Slice", ["x"], ["y"], starts=[1], ends=[3], axes=[1])),
    (10, helper.make_node("Slice", ["x", "one", "two"], ["y"])),
    (11, helper.make_node("Squeeze", ["x3"], ["y"], axes=[2])),
    (11, helper.make_node("Unsqueeze", ["x"], ["y"], axes=[0, 3])),
    (11, helper.make_node("Softmax", ["x3"], ["y"], axis=1)),
    (12, helper.make_node("Softmax", ["x"], ["y"])),
    (13, helper.make_node("Softmax", ["x3"], ["y"], axis=1)),
    (11, helper.make_node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)),
    (13, helper.make_node("ReduceSum", ["x", "one"], ["y"])),
    (13, helper.make_node("ReduceSum", ["x"], ["y"], noop_with_empty_axes=1)),
    (17, helper.make_node("ReduceMax", ["x"], ["y"], axes=[-1])),
    (18, helper.make_node("ReduceMax", ["x", "one"], ["y"], keepdims=0)),
    (13, helper.make_node("Max", ["x", "s", "v"], ["y"])),
    (13, helper.make_node("Sum", ["x"], ["y"])),
    (13, helper.make_node("Transpose", ["x"], ["y"])),
]


@pytest.mark.parametrize(("opset", "node"), OLD_FORMS, ids=lambda value: getattr(value, "op_type", str(value)))
def test_forms_of_each_opset_against_the_onnx_package(opset, node):
    reshape = helper.make_node("Reshape", ["x", "shape"], ["x3"])
    proto = model(
        [reshape, node],
        (
            tensor("shape", [-1, 3, 1], np.int64),
            tensor("s", [1, -2, 0.5]),
            tensor("v", [1, 2, 3]),
            tensor("one", [1], np.int64),
            tensor("two", [2], np.int64),
        ),
        opset=opset,
    )
    if (opset, node.op_type) == (7, "BatchNormalization"):  # the onnx package has no reference below opset 9
        centred = (X - np.array([1, -2, 0.5])) / np.sqrt(np.array([1, 2, 3]) + 1e-3)
        expected = (centred * np.array([1, -2, 0.5]) + np.array([1, -2, 0.5]))[..., None].astype(np.float32)
    else:
        (expected,) = ReferenceEvaluator(proto).run(None, {"x": X})
    found = run(proto)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["convnet", "transformer"])
def test_another_shape_means_the_same_whether_rebuilt_or_imported(name):
    make, shapes = {
        "convnet": (small_convnet, [(1, 3, 16, 16), (2, 3, 7, 9)]),
        "transformer": (transformer_block, [(1, 4), (3, 1)]),
    }[name]
    opened = open_model(make())
    first = import_model(opened, {opened.proto.graph.input[0].name: shapes[0]})
    (port,) = first.inputs
    other = import_model(opened, {port.name: shapes[1]})
    assert print_graph(rebuild(first, {port.name: shapes[1]})) == print_graph(other)
