"""Models with tensors of narrow element types: arrays, files, quantization, and what is refused."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import InputError, ModelError
from glowstone.exporter import export_graph
from glowstone.graph import evaluate_graph, named_tensors, parse_graph, print_graph
from glowstone.importer import import_model, open_model
from glowstone.tools.tensor_files import load_tensors, save_tensors
from glowstone.types import ElementType

NARROW = [element for element in ElementType if element.is_narrow]
FLOATS_OF_8_BITS = [ElementType.F8E4M3FN, ElementType.F8E4M3FNUZ, ElementType.F8E5M2, ElementType.F8E5M2FNUZ]
OPSET = 25
F32 = TensorProto.FLOAT


def number_of(element: ElementType) -> int:
    return helper.np_dtype_to_tensor_dtype(element.dtype)


def codes(element: ElementType, *shape: int) -> np.ndarray:
    """Any elements of the type."""
    bits = np.random.default_rng(3).integers(0, 1 << element.bits, shape, np.uint8)
    return bits.view(element.dtype)


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    return (found.dtype, found.shape) == (expected.dtype, expected.shape) and found.tobytes() == expected.tobytes()


def model_of(nodes, inputs, outputs, initializers=(), opset=OPSET) -> onnx.ModelProto:
    """Inputs and outputs as name: (ONNX type number, shape)."""
    ports = [
        [helper.make_tensor_value_info(name, number, shape) for name, (number, shape) in group.items()]
        for group in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "narrow", *ports, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def moving_model(element: ElementType) -> onnx.ModelProto:
    """y is x [3, 5] transposed, and z a constant of 7 elements, x's first row behind it."""
    number = number_of(element)
    nodes = [
        helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0]),
        helper.make_node("Slice", ["x", "first", "end"], ["row"]),
        helper.make_node("Squeeze", ["row", "first"], ["flat"]),
        helper.make_node("Concat", ["c", "flat"], ["z"], axis=0),
    ]
    initializers = [
        numpy_helper.from_array(codes(element, 7), "c"),
        numpy_helper.from_array(np.array([0]), "first"),
        numpy_helper.from_array(np.array([1]), "end"),
    ]
    return model_of(nodes, {"x": (number, [3, 5])}, {"y": (number, [5, 3]), "z": (number, [12])}, initializers)


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_arrays_in_and_out(element):
    model = glowstone.compile(moving_model(element))
    x = codes(element, 3, 5)
    for each in (model, pickle.loads(pickle.dumps(model))):
        found = each.run({"x": x})
        assert same(found["y"], np.ascontiguousarray(x.T))
        assert same(found["z"], np.concatenate([codes(element, 7), x[0]]))
    with pytest.raises(InputError, match="another element type") as caught:
        model.run({"x": x.astype(np.float32)})
    assert element.dtype.name in str(caught.value)
    y, z = np.zeros((5, 3), element.dtype), np.zeros(12, element.dtype)
    model.bind({"x": x}, {"y": y, "z": z})()
    assert same(y, np.ascontiguousarray(x.T))


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_type_names_are_those_of_onnx(element):
    session = glowstone.InferenceSession(moving_model(element).SerializeToString())
    name = TensorProto.DataType.Name(number_of(element)).lower()
    assert [port.type for port in (*session.get_inputs(), *session.get_outputs())] == [f"tensor({name})"] * 3


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_export_and_text(element, tmp_path):
    number = number_of(element)
    weights = numpy_helper.from_array(codes(element, 7, 1), "c")
    nodes = [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0]), helper.make_node("Identity", ["c"], ["z"])]
    made = model_of(nodes, {"x": (number, [3, 5])}, {"y": (number, [5, 3]), "z": (number, [7, 1])}, [weights])
    graph = import_model(open_model(made))
    expected = evaluate_graph(graph, {"x": codes(element, 3, 5)})
    again = export_graph(graph)
    if element.bits == 6:
        assert {node.domain for node in again.graph.node} == {"glowstone"}, "no ONNX operator moves them"
        again = made
    exported = import_model(open_model(again))
    save_tensors(tmp_path / "c.npz", named_tensors(graph))
    parsed = parse_graph(print_graph(graph), load_tensors(tmp_path / "c.npz"))
    for again in (exported, parsed):
        found = evaluate_graph(again, {"x": codes(element, 3, 5)})
        assert all(same(np.asarray(found[name]), np.asarray(expected[name])) for name in ("y", "z"))


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_large_constants_beside_the_text(element, tmp_path):
    number = number_of(element)
    weights = numpy_helper.from_array(codes(element, 30, 11), "c")
    made = model_of([helper.make_node("Concat", ["c", "x"], ["y"], axis=0)], {"x": (number, [1, 11])},
                    {"y": (number, [31, 11])}, [weights])  # fmt: skip
    graph = import_model(open_model(made))
    save_tensors(tmp_path / "c.npz", named_tensors(graph))
    assert named_tensors(graph)
    parsed = parse_graph(print_graph(graph), load_tensors(tmp_path / "c.npz"))
    assert print_graph(parsed) == print_graph(graph)


@pytest.mark.parametrize("element", NARROW, ids=str)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_amount_of_bytes_is_refused(element, change):
    proto = moving_model(element)
    raw = proto.graph.initializer[0].raw_data
    proto.graph.initializer[0].raw_data = raw[:-1] if change < 0 else raw + b"\0"
    with pytest.raises(ModelError, match="wrong amount of data"):
        glowstone.compile(proto)


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_arithmetic_is_refused(element):
    number = number_of(element)
    ports = {"x": (number, [4])}
    for kind in ("Add", "Equal"):
        made = model_of([helper.make_node(kind, ["x", "x"], ["y"])], ports, {"y": (number, [4])})
        with pytest.raises(ModelError, match="does not take this element type") as caught:
            glowstone.compile(made)
        assert str(element) in str(caught.value)


@pytest.mark.parametrize("element", NARROW, ids=str)
def test_operators_of_the_newest_opset(element):
    """Every operator that takes all element types and is in no other test of narrow ones."""
    number = number_of(element)
    one = numpy_helper.from_array(codes(element, 1), "one")
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"], axis=2),
        helper.make_node("Identity", ["flat"], ["same"]),
        helper.make_node("Unsqueeze", ["same", "zero"], ["y"]),
        helper.make_node("ConstantOfShape", ["shape"], ["constants"], value=one),
        helper.make_node("Constant", [], ["constant"], value=one),
        helper.make_node("Reshape", ["constant", "none"], ["scalar"]),
        helper.make_node("Pad", ["x", "pads", "scalar"], ["padded"]),
        helper.make_node("Pad", ["x", "pads"], ["mirrored"], mode="reflect"),
        helper.make_node("Shape", ["x"], ["extents"]),
        helper.make_node("Size", ["x"], ["size"]),
    ]
    arrays = {"zero": [0], "shape": [2, 3], "none": [], "pads": [0, 1, 1, 0, 0, 1]}
    initializers = [numpy_helper.from_array(np.array(numbers, np.int64), name) for name, numbers in arrays.items()]
    outputs = {
        **dict.fromkeys(("y", "constants", "padded", "mirrored"), (number, None)),
        **dict.fromkeys(("extents", "size"), (TensorProto.INT64, None)),
    }
    x, single = codes(element, 2, 3, 3), codes(element, 1)
    found = glowstone.compile(model_of(nodes, {"x": (number, x.shape)}, outputs, initializers)).run({"x": x})
    assert same(found["y"], x.reshape(1, 6, 3))
    assert same(found["constants"], np.broadcast_to(single, (2, 3)).copy())
    bits, widths = x.view(np.uint8), ((0, 0), (1, 0), (1, 1))
    padded = np.pad(bits, widths, constant_values=single.view(np.uint8)[0])
    assert same(found["padded"], padded.view(element.dtype))
    assert same(found["mirrored"], np.pad(bits, widths, mode="reflect").view(element.dtype))
    assert (found["extents"].tolist(), int(found["size"])) == ([2, 3, 3], 18)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", FLOATS_OF_8_BITS, ids=str)
def test_conversions_in_a_row(source, saturate):
    """What passes make of them must keep infinities, NaN and saturation."""
    targets = FLOATS_OF_8_BITS
    nodes = [helper.make_node("Cast", ["x"], ["wide"], to=F32)]
    nodes += [
        helper.make_node("Cast", ["wide"], [f"y{index}"], to=number_of(target), saturate=saturate)
        for index, target in enumerate(targets)
    ]
    x = np.arange(256).astype(np.uint8).view(source.dtype)
    outputs = {f"y{index}": (number_of(target), [256]) for index, target in enumerate(targets)}
    made = model_of(nodes, {"x": (number_of(source), [256])}, outputs)
    expected = ReferenceEvaluator(made).run(None, {"x": x})
    for found, reference in zip(glowstone.compile(made).run({"x": x}).values(), expected, strict=True):
        assert found.dtype == reference.dtype
        np.testing.assert_array_equal(found.astype(np.float32), reference.astype(np.float32))


@pytest.mark.parametrize(("element", "rows"), [("int4", 70), ("uint4", 64)])
def test_product_with_weights_of_4_bits(element, rows):
    """Blocks of 32, the last one shorter; against ONNX Runtime."""
    random = np.random.default_rng(8)
    bits, columns = random.integers(0, 16, (rows, 5), np.uint8), 5
    dtype = np.dtype(getattr(ml_dtypes, element))
    scales = random.uniform(0.01, 0.1, (-(-rows // 32), columns)).astype(np.float32)
    zeros = random.integers(0, 8, scales.shape, np.uint8).view(dtype)
    arrays = {"w": bits.view(dtype), "s": scales, "z": zeros}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wide"], axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    ports = {"x": (F32, [3, rows])}, {"y": (F32, [3, columns])}
    made = model_of(nodes, *ports, [numpy_helper.from_array(array, name) for name, array in arrays.items()], opset=21)
    x = random.standard_normal((3, rows)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # else x goes to 8 bits
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(
        glowstone.compile(made)(x), np.asarray(session.run(None, {"x": x})[0]), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("element", FLOATS_OF_8_BITS, ids=str)
def test_product_of_floats_of_8_bits(element):
    """QLinearMatMul, against NumPy: onnx.reference has none of floats."""
    random, number = np.random.default_rng(9), number_of(element)
    a, b = (random.standard_normal(shape).astype(element.dtype) for shape in ((4, 6), (6, 3)))
    scales = {name: np.array(scale, np.float32) for name, scale in (("s", 0.5), ("t", 0.25), ("u", 0.125))}
    initializers = [numpy_helper.from_array(scale, name) for name, scale in scales.items()]
    initializers.append(numpy_helper.from_array(np.zeros((), element.dtype), "z"))
    node = helper.make_node("QLinearMatMul", ["a", "s", "z", "b", "t", "z", "u", "z"], ["y"])
    made = model_of([node], {"a": (number, a.shape), "b": (number, b.shape)}, {"y": (number, [4, 3])}, initializers)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = glowstone.compile(made).run({"a": a, "b": b})["y"]
    assert same(found, exact.astype(element.dtype))
