"""Files that are invalid and common, whose meaning is clear: accepted, with the results of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import glowstone
from glowstone.errors import ModelError

X = np.array([[-1.5, 0, 2], [3, -0.5, 1]], np.float32)


def plain_model() -> ModelProto:
    """z = relu(x + w) * w, t = -relu(x + w): three steps, an initializer that is used twice, two outputs."""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], name="add"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Mul", ["b", "w"], ["z"], name="mul"),
        helper.make_node("Neg", ["b"], ["t"], name="neg"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xzt"]
    w = numpy_helper.from_array(np.array([0.5, -1, 2], np.float32), "w")
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def reference(model: ModelProto) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})


def check(model: ModelProto, expected: list[np.ndarray]) -> None:
    """From a message and from bytes; the message given is left as it is."""
    data = model.SerializeToString()
    for source in (model, data):
        results = glowstone.compile(source, cache=False).run({"x": X})
        for mine, theirs in zip(results.values(), expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert model.SerializeToString() == data


def reversed_nodes(model: ModelProto) -> None:
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(model.graph.node)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def shuffled_bodies(model: ModelProto) -> None:
    """Nodes out of order in the branch of an If, which reads what comes later outside."""
    inner = [helper.make_node("Neg", ["q"], ["r"]), helper.make_node("Add", ["b", "w"], ["q"])]
    other = [helper.make_node("Identity", ["b"], ["s"])]
    names = ("r", "s")
    bodies = [
        helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])])
        for nodes, name in zip((inner, other), names, strict=True)
    ]
    choice = helper.make_node("If", ["c"], ["chosen"], then_branch=bodies[0], else_branch=bodies[1])
    condition = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["c"]),
    ]
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    model.graph.node[-1].input[0] = "chosen"
    nodes = [choice, *map(copied, model.graph.node), *reversed(condition)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def copied(message: onnx.NodeProto) -> onnx.NodeProto:
    return onnx.NodeProto.FromString(message.SerializeToString())


def doubled_opset(model: ModelProto) -> None:
    model.opset_import.append(model.opset_import[0])


def both_names_of_the_domain(model: ModelProto) -> None:
    model.opset_import.add(domain="ai.onnx", version=17)


def unknown_domains(model: ModelProto) -> None:
    model.opset_import.add(domain="com.example.nothing", version=3)


def no_ir_version(model: ModelProto) -> None:
    model.ClearField("ir_version")


def no_names(model: ModelProto) -> None:
    model.graph.ClearField("name")
    for node in model.graph.node:
        node.ClearField("name")


def same_names(model: ModelProto) -> None:
    for node in model.graph.node:
        node.name = "n"


def initializers_as_inputs(model: ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))


def unused_initializers(model: ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "unused"))


def wrong_value_info(model: ModelProto) -> None:
    model.graph.value_info.extend(
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, [7, 7, 7]),
            helper.make_tensor_value_info("none", TensorProto.INT64, [1]),
        ]
    )


def untyped_outputs(model: ModelProto) -> None:
    for output in model.graph.output:
        output.ClearField("type")


def wrong_output_shape(model: ModelProto) -> None:
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, [5, 5]))


def empty_optional_operands(model: ModelProto) -> None:
    model.graph.node[1].CopyFrom(helper.make_node("Clip", ["a", "zero", "", ""], ["b"]))
    model.graph.node[1].input[:] = ["a", "zero", ""]
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))


def dead_nodes(model: ModelProto) -> None:
    model.graph.node.append(helper.make_node("Sigmoid", ["x"], ["nobody"]))


def attributes_without_kind(model: ModelProto) -> None:
    """As files of the first version of the format have them."""
    model.graph.node[1].CopyFrom(helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.0))
    model.graph.node[1].attribute[0].ClearField("type")


def documented(model: ModelProto) -> None:
    model.doc_string = model.graph.doc_string = "d" * 100_000
    model.metadata_props.add(key="k", value="v")
    model.metadata_props.add(key="k", value="other")


CHANGES: list[Callable[[ModelProto], None]] = [
    doubled_opset,
    both_names_of_the_domain,
    unknown_domains,
    no_ir_version,
    no_names,
    same_names,
    initializers_as_inputs,
    unused_initializers,
    wrong_value_info,
    untyped_outputs,
    wrong_output_shape,
    empty_optional_operands,
    dead_nodes,
    attributes_without_kind,
    documented,
    reversed_nodes,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_faults_that_change_no_meaning(change):
    expected = reference(plain_model())
    model = plain_model()
    change(model)
    check(model, expected)


def test_nodes_of_bodies_in_any_order():
    model = plain_model()
    shuffled_bodies(model)
    with_order = plain_model()
    shuffled_bodies(with_order)
    order = [1, 2, 3, 6, 5, 0, 4]  # add, relu, mul, sum, greater, if, neg
    nodes = [copied(with_order.graph.node[index]) for index in order]
    body = next(one.g for one in nodes[5].attribute if one.name == "then_branch")
    inner = [copied(body.node[1]), copied(body.node[0])]
    del body.node[:]
    body.node.extend(inner)
    del with_order.graph.node[:]
    with_order.graph.node.extend(nodes)
    check(model, reference(with_order))


def test_any_order_of_many_nodes():
    """A permutation of a ladder: the sum of the two values before."""
    random = np.random.default_rng(0)
    nodes = [helper.make_node("Add", [f"v{max(n - 1, 0)}", f"v{n}"], [f"v{n + 1}"]) for n in range(40)]
    nodes.insert(0, helper.make_node("Mul", ["x", "tiny"], ["v0"]))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "v40")]
    tiny = numpy_helper.from_array(np.float32(2**-20), "tiny")
    graph = helper.make_graph([nodes[n] for n in random.permutation(41)], "g", ports[:1], ports[1:], [tiny])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    first, second = 1, 2
    for _ in range(39):
        first, second = second, first + second
    check(model, [np.float32(second * 2.0**-20) * X])


def test_outputs_that_are_inputs_and_initializers():
    model = plain_model()
    model.graph.output.extend(
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]),
        ]
    )
    check(model, [*reference(plain_model()), X, np.array([0.5, -1, 2], np.float32)])


def test_nothing_but_an_initializer():
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("w", "v")]
    w = numpy_helper.from_array(np.array([1.5, 2], np.float32), "w")
    graph = helper.make_graph([helper.make_node("Neg", ["w"], ["v"])], "g", [], ports, [w])
    results = glowstone.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])).run({})
    np.testing.assert_array_equal(results["w"], [1.5, 2])
    np.testing.assert_array_equal(results["v"], [-1.5, -2])


STORED = np.array([3, -7, 0], np.int64)


@pytest.mark.parametrize(
    ("data_type", "field"),
    [
        (TensorProto.INT64, "int32_data"),
        (TensorProto.INT32, "int64_data"),
        (TensorProto.INT8, "int64_data"),
        (TensorProto.DOUBLE, "float_data"),
        (TensorProto.FLOAT, "double_data"),
        (TensorProto.FLOAT, "float_data"),
        (TensorProto.INT64, "int64_data"),
    ],
)
def test_numbers_in_another_field(data_type, field):
    """Of the same kind, as many as there are elements; and raw data that are there and empty."""
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    for has_empty_raw_data in (False, True):
        tensor = TensorProto(name="w", data_type=data_type, dims=[3], **{field: STORED.tolist()})
        if has_empty_raw_data:
            tensor.raw_data = b""
        port = helper.make_tensor_value_info("y", data_type, [3])
        graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [port], [tensor])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        results = glowstone.compile(model, cache=False).run({})
        assert results["y"].dtype == dtype
        np.testing.assert_array_equal(results["y"], STORED.astype(dtype))


@pytest.mark.parametrize(
    ("data_type", "fields"),
    [
        (TensorProto.FLOAT, {"int32_data": [1, 2, 3]}),
        (TensorProto.INT64, {"float_data": [1, 2, 3]}),
        (TensorProto.INT64, {"int32_data": [1, 2]}),
        (TensorProto.INT8, {"int64_data": [1, 2, 300]}),
        (TensorProto.INT64, {"int32_data": [1, 2, 3], "uint64_data": [4, 5, 6]}),
        (TensorProto.FLOAT, {}),
    ],
)
def test_numbers_whose_meaning_is_not_clear(data_type, fields):
    tensor = TensorProto(name="w", data_type=data_type, dims=[3], **fields)
    port = helper.make_tensor_value_info("y", data_type, [3])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [port], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(ModelError, match="tensor 'w'"):
        glowstone.compile(model, cache=False)
