"""Graphs as ONNX models: standard operators mean the same after a second import; all others keep their fields."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from helpers.models import save_small_convolution

from glowstone import examples, importer
from glowstone.backends.cpu.backend import CpuBackend
from glowstone.backends.cpu.target import Target
from glowstone.compiler import Settings, compile_template
from glowstone.exporter import DOMAIN, export_graph
from glowstone.graph import OPERATORS, Builder, Graph, Tensor, evaluate_graph, rebuild
from glowstone.graph_passes import CANONICAL
from glowstone.ops import Add, Constant, Shape
from glowstone.tools.execution import run_onnxruntime
from glowstone.types import TensorType

AVX2 = Target.parse("x86_64-unknown-linux-gnu/x86-64-v3/")


def graph_of(sample) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of one node, with operands that decide shapes as constants, and its inputs."""
    graph = Graph("sample")
    builder = Builder(graph, ("node",))
    rules = sample.operator.operands
    operands, inputs = [], {}
    for index, array in enumerate(sample.operands):
        rule = rules[min(index, len(rules) - 1)]
        if array is None:
            operands.append(None)
        elif rule.host:
            operands.append(builder.emit(Constant(Tensor(np.asarray(array)))))
        else:
            tensor = Tensor(np.asarray(array))
            operands.append(graph.add_input(f"x{index}", TensorType(tensor.element, tensor.array.shape)))
            inputs[f"x{index}"] = tensor.array
    for index, value in enumerate(builder.emit_node(sample.operator, *operands).results):
        graph.add_output(f"y{index}", value)
    return graph, inputs


def reimported(model: onnx.ModelProto) -> Graph:
    return importer.import_model(importer.open_model(model.SerializeToString()))


def assert_same_results(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        if array.dtype.kind in "biu":
            np.testing.assert_array_equal(found[name], array)
        else:  # numbers among the attributes are float32 in ONNX
            np.testing.assert_allclose(found[name].astype(np.float64), array.astype(np.float64), rtol=1e-5, atol=1e-6)


def is_standard(model: onnx.ModelProto) -> bool:
    return all(node.domain == "" for node in model.graph.node)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_standard_operators_mean_the_same_after_a_second_import(name):
    for sample in OPERATORS[name].samples():
        graph, inputs = graph_of(sample)
        model = export_graph(graph)
        if not is_standard(model):
            continue
        onnx.checker.check_model(model)
        assert_same_results(evaluate_graph(reimported(model), inputs), evaluate_graph(graph, inputs))


def test_nearly_all_operators_of_common_models_have_a_standard_form():
    common = ("Add", "Conv", "Gelu", "LSTM", "MaxPool", "MatMul", "Pad", "ReduceMean", "Reshape", "Slice", "Transpose")
    for name in common:
        assert any(is_standard(export_graph(graph_of(sample)[0])) for sample in OPERATORS[name].samples()), name


def test_a_canonical_graph_gives_the_same_results_at_other_extents(tmp_path):
    source = importer.import_model(importer.open_model(save_small_convolution(tmp_path / "model.onnx")))
    graph = rebuild(source)
    for one in CANONICAL:
        one(graph)
    model = export_graph(graph)
    onnx.checker.check_model(model, full_check=True)
    assert [entry.dim_param for entry in model.graph.input[0].type.tensor_type.shape.dim] == ["n", "", "", "w"]
    x = np.random.default_rng(0).standard_normal((2, 3, 48, 9)).astype(np.float32)
    shapes = {"x": x.shape}
    again = importer.import_model(importer.open_model(model.SerializeToString()), shapes)
    expected = evaluate_graph(rebuild(source, shapes), {"x": x})["y"]
    np.testing.assert_allclose(evaluate_graph(again, {"x": x})["y"], expected, atol=1e-6)


def test_fused_nodes_are_in_the_own_domain_with_their_fields():
    source = importer.import_model(importer.open_model(examples.DIGITS))
    template = compile_template(source, {"image": (1, 1, 8, 8)}, Settings(CpuBackend(AVX2)))
    model = export_graph(template.graph)
    onnx.checker.check_model(model)
    own = {node.op_type: node for node in model.graph.node if node.domain == DOMAIN}
    assert "Fused" in own
    attributes = {one.name: onnx.helper.get_attribute_value(one) for one in own["Fused"].attribute}
    assert b"Conv" in attributes["anchor"] or b"MatMul" in attributes["anchor"]
    assert attributes["epilogue"]
    assert model.opset_import[1].domain == DOMAIN


def test_outputs_that_are_inputs_constants_or_the_same_value_keep_their_names():
    graph = Graph("outputs")
    builder = Builder(graph, ("one",))
    x = graph.add_input("x", Tensor(np.float32([1, 2])).type)
    total = builder.emit(Add(), x, x)
    for name, value in (("a", x), ("b", total), ("c", total)):
        graph.add_output(name, value)
    graph.add_output("d", builder.emit(Constant(Tensor(np.float32([3])))))
    graph.add_output("e", builder.emit(Shape(), x))
    model = export_graph(graph)
    onnx.checker.check_model(model, full_check=True)
    inputs = {"x": np.float32([1, 2])}
    assert_same_results(evaluate_graph(reimported(model), inputs), evaluate_graph(graph, inputs))
    assert_same_results(run_onnxruntime(model, inputs), evaluate_graph(graph, inputs))  # it refuses names given twice
