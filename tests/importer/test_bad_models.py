"""Models that must be refused: the class of the error, what it names, and what it says to do."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone
from glowstone.errors import (
    GlowstoneError,
    InputError,
    LimitError,
    ModelError,
    ShapeError,
    UnknownValueError,
    UnsupportedError,
)
from glowstone.importer import import_model, open_model

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model(
    nodes: list[onnx.NodeProto],
    *,
    inputs: dict[str, list[int | str]] | None = None,
    element: int = FLOAT,
    outputs: tuple[str, ...] = ("y",),
    initializers: list[onnx.TensorProto] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of float inputs x [2, 3] (or as given), with outputs that declare no shape."""
    shapes = {"x": [2, 3]} if inputs is None else inputs
    graph = helper.make_graph(
        nodes,
        "bad",
        [helper.make_tensor_value_info(name, element, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, 0, None) for name in outputs],
        initializers or [],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(kind: str, inputs: list[str], outputs: list[str] | None = None, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, outputs or ["y"], name=f"the {kind}", **attributes)


def tensor(name: str, array: object, dtype: type = np.int64) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, dtype), name)


def refused(kind: type[GlowstoneError], source: object, message: str, **shapes: tuple[int, ...]) -> GlowstoneError:
    """The error that importing raises: exactly of this class, with the file named and this in its message."""
    with pytest.raises(GlowstoneError) as caught:
        import_model(open_model(source), shapes or None)
    error = caught.value
    assert type(error) is kind
    assert message in error.message
    assert error.file == ("<ModelProto>" if isinstance(source, onnx.ModelProto) else error.file)
    assert error.file
    return error


def test_no_model():
    for source in (b"", b"\x00" * 100, b"PK\x03\x04 a zip archive", b"<html></html>", "text".encode("utf-16")):
        error = refused(ModelError, source, "model")
        assert error.file == "<bytes>"
        assert error.expected


def test_missing_file(tmp_path):
    error = refused(ModelError, tmp_path / "none.onnx", "cannot read")
    assert error.file == str(tmp_path / "none.onnx")
    assert error.remedy == "check the path"
    refused(ModelError, tmp_path, "cannot read")
    refused(ModelError, f"{tmp_path}/nul\0", "cannot read")


def test_no_source():
    with pytest.raises(ModelError, match="not a model") as caught:
        open_model(7)
    assert caught.value.found == "int"


def test_truncated_everywhere():
    data = model([node("Add", ["x", "c"])], initializers=[tensor("c", np.ones(3), np.float32)]).SerializeToString()
    for length in range(len(data)):
        refused(ModelError, data[:length], "")
    import_model(open_model(data))


def test_opsets():
    error = refused(ModelError, model([node("Relu", ["x"])], opset=0), "no such opset")
    assert error.found == 0
    without = model([node("Relu", ["x"])])
    del without.opset_import[:]
    refused(ModelError, without, "which opset")


def test_unknown_operators_are_listed_at_once():
    nodes = [
        node("Frobnicate", ["x"], ["a"]),
        helper.make_node("Frobnicate", ["a"], ["b"]),
        helper.make_node("Whirl", ["b"], ["y"], domain="com.example"),
    ]
    error = refused(UnsupportedError, model(nodes), "Frobnicate (2), com.example.Whirl (1)")
    assert error.node == "the Frobnicate; y"
    assert error.operator == "Frobnicate, com.example.Whirl"


def test_unsupported_element_types():
    error = refused(UnsupportedError, model([node("Identity", ["x"])], element=TensorProto.COMPLEX64), "'x'")
    assert error.found == "complex64"
    assert "f32" in str(error.expected)
    cast = refused(UnsupportedError, model([node("Cast", ["x"], to=TensorProto.COMPLEX64)]), "attribute to")
    assert (cast.node, cast.operator, cast.found) == ("the Cast", "Cast", "complex64")


def test_values_that_no_graph_has():
    """Such models run in steps."""
    refused(UnknownValueError, model([node("Identity", ["x"])], element=TensorProto.STRING), "input 'x'")
    text = helper.make_tensor("words", TensorProto.STRING, [1], [b"word"])
    refused(UnknownValueError, model([node("Identity", ["words"])], initializers=[text]), "texts")
    sequence = model([node("Identity", ["x"])])
    sequence.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2])))
    refused(UnknownValueError, sequence, "is no tensor")
    rankless = model([node("Identity", ["x"])])
    rankless.graph.input[0].type.tensor_type.ClearField("shape")
    refused(UnknownValueError, rankless, "with a rank")


def test_shapes_that_do_not_fit_each_other():
    error = refused(ShapeError, model([node("MatMul", ["x", "x"])]), "inner extents differ")
    assert (error.node, error.operator) == ("the MatMul", "MatMul")
    assert error.expected
    assert "f32[2,3]" in str(error.found)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 1), (2, -1)])
def test_reference_shapes_that_do_not_fit_the_declared_ones(shape):
    proto = model([node("Relu", ["x"])], inputs={"x": [2, "n"] if shape == (2, -1) else [2, 3]})
    error = refused(ShapeError, proto, "input 'x' has another shape", x=shape)
    assert error.found == list(shape)
    assert "symbolic" in str(error.remedy)


def test_symbols_without_a_fitting_reference_shape_say_what_to_do():
    proto = model([node("Add", ["x", "z"])], inputs={"x": ["n", 7], "z": ["m", 5]})
    assert "shapes={...}" in str(refused(ShapeError, proto, "cannot be broadcast").remedy)
    refused(ShapeError, model([node("Relu", ["x"])]), "no input of this name", z=(1,))


@pytest.mark.parametrize("extents", [[2**62], [2**62, 2**62], [2**40, 2**40], [0, 2**62], [1] * 40])
def test_extents_that_no_machine_holds(extents):
    refused(LimitError, model([node("Relu", ["x"])], inputs={"x": extents}), "too")
    initializer = tensor("c", [], np.float32)
    initializer.dims[:] = extents
    refused(LimitError, model([node("Relu", ["c"])], initializers=[initializer]), "too")
    shape = tensor("s", extents)
    made = model([node("ConstantOfShape", ["s"])], initializers=[shape])
    assert refused(LimitError, made, "too").operator == "ConstantOfShape"


def test_negative_extents():
    negative = tensor("c", [], np.float32)
    negative.dims[:] = [-1, 3]
    assert refused(ModelError, model([node("Relu", ["c"])], initializers=[negative]), "negative").found == [-1, 3]
    refused(ModelError, model([node("Relu", ["x"])], inputs={"x": [2, -5]}), "negative")
    shape = tensor("s", [-3])
    assert refused(ShapeError, model([node("ConstantOfShape", ["s"])], initializers=[shape]), "negative").node


@pytest.mark.parametrize("change", [-1, 1, 4, -24])
def test_wrong_amount_of_raw_data(change):
    initializer = tensor("c", np.ones((2, 3)), np.float32)
    initializer.raw_data = (initializer.raw_data + b"\0" * 8)[: 24 + change]
    error = refused(ModelError, model([node("Relu", ["c"])], initializers=[initializer]), "tensor 'c'")
    assert error.found == f"{24 + change} bytes"


def test_wrong_amount_of_typed_data():
    initializer = helper.make_tensor("c", FLOAT, [3], [1.0, 2.0, 3.0])
    initializer.float_data.append(4.0)
    error = refused(ModelError, model([node("Relu", ["c"])], initializers=[initializer]), "tensor 'c'")
    assert error.found == "4 elements"


def test_names_are_computed_once_and_before_they_are_read():
    relu = node("Relu", ["x"])
    refused(ModelError, model([relu, node("Neg", ["x"])]), "value 'y' is computed twice")
    refused(ModelError, model([node("Relu", ["x"], ["x"])], outputs=("x",)), "value 'x' is computed twice")
    constants = [tensor("c", 1), tensor("c", 2)]
    refused(ModelError, model([relu], initializers=constants), "an initializer has no name of its own")
    refused(ModelError, model([relu], outputs=("y", "y")), "output 'y' is listed twice")
    twice = model([relu])
    twice.graph.input.append(twice.graph.input[0])
    refused(ModelError, twice, "an input has no name of its own")
    error = refused(ModelError, model([node("Relu", ["z"])]), "operand 'z' is computed by no node")
    assert (error.node, error.operator) == ("the Relu", "Relu")
    refused(ModelError, model([relu], outputs=("z",)), "output 'z' is computed by no node")
    refused(ModelError, model([], outputs=()), "no graph")


def test_order_of_nodes():
    cycle = [node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"]), node("Relu", ["b"])]
    assert refused(ModelError, model(cycle), "operand 'b' follows from itself").operator == "Add"
    refused(ModelError, model([node("Add", ["x", "y"])]), "operand 'y' follows from itself")


def test_missing_and_superfluous_operands():
    for inputs in ([], ["x", "x", "x"], ["x", ""]):
        assert refused(ModelError, model([node("MatMul", inputs)]), "").operator == "MatMul"
    assert refused(ModelError, model([node("Add", ["", "x"])]), "lacks operand").node == "the Add"
    refused(UnsupportedError, model([node("MaxPool", ["x"], ["y", "indices", "more"], kernel_shape=[1])],
                                    inputs={"x": [1, 1, 3]}), "a result of the operator")  # fmt: skip


ATTRIBUTES = [
    ("Softmax", "axis", 1.5),
    ("Softmax", "axis", "last"),
    ("Softmax", "axis", [1]),
    ("LeakyRelu", "alpha", 1),
    ("LeakyRelu", "alpha", [0.5]),
    ("Transpose", "perm", 1),
    ("Transpose", "perm", [0.0, 1.0]),
    ("Transpose", "perm", "10"),
    ("Concat", "axis", tensor("t", 1)),
    ("Gemm", "transA", 1.0),
    ("ReduceMean", "axes", 1),
    ("Constant", "value", 3),
    ("Constant", "value_ints", 3),
    ("Constant", "value_float", 3),
]


@pytest.mark.parametrize(("kind", "name", "value"), ATTRIBUTES, ids=lambda value: str(value)[:12])
def test_attributes_of_the_wrong_kind(kind, name, value):
    inputs = {"Constant": [], "Gemm": ["x", "x"], "Concat": ["x", "x"]}.get(kind, ["x"])
    error = refused(ModelError, model([node(kind, inputs, **{name: value})]), f"attribute {name} has the wrong kind")
    assert (error.node, error.operator) == (f"the {kind}", kind)
    assert error.expected
    assert error.found


def test_attributes_that_are_missing_twice_or_unknown():
    refused(ModelError, model([node("Concat", ["x", "x"])]), "attribute axis is missing")
    refused(ModelError, model([node("MaxPool", ["x"])], inputs={"x": [1, 1, 3]}), "attribute kernel_shape is missing")
    refused(ModelError, model([node("MaxPool", ["x"], kernel_shape=[1], auto_pad="SOME")], inputs={"x": [1, 1, 3]}),
            "auto_pad is unknown")  # fmt: skip
    twice = node("Softmax", ["x"], axis=1)
    twice.attribute.append(twice.attribute[0])
    refused(ModelError, model([twice]), "an attribute is given twice")
    graph = helper.make_graph([], "inner", [], [])
    refused(UnsupportedError, model([node("Relu", ["x"], bodies=[graph])]), "attribute bodies")
    refused(UnknownValueError, model([node("Constant", [], value_string="text")]), "texts")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"strides": [1]}, "do not fit the rank"),
        ({"strides": [0, 1]}, "out of range"),
        ({"pads": [-1, 0, 0, 0]}, "out of range"),
        ({"pads": [0, 0, 0]}, "do not fit the rank"),
        ({"dilations": [2**62, 1]}, "larger than the padded input"),
        ({"kernel_shape": [3, 3]}, "kernel_shape differs"),
        ({"group": 0}, "channels do not fit"),
        ({"group": 2}, "channels do not fit"),
    ],
)
def test_windows_that_do_not_fit(attributes, message):
    weights = tensor("w", np.ones((2, 3, 2, 2)), np.float32)
    with pytest.raises(GlowstoneError, match=message) as caught:
        import_model(
            open_model(
                model([node("Conv", ["x", "w"], **attributes)], inputs={"x": [1, 3, 5, 5]}, initializers=[weights])
            )
        )
    assert caught.value.node == "the Conv"


def test_names_that_are_no_text():
    data = model([node("Relu", ["x"], ["a name"]), node("Neg", ["a name"])]).SerializeToString()
    assert refused(ModelError, data.replace(b"a name", b"\xff\xfe\xfd\xfc\xfb\xfa"), "a name is no text").found


def test_known_indices_out_of_range():
    proto = model([node("Gather", ["c", "i"])], initializers=[tensor("c", [1, 2]), tensor("i", 5)])
    error = refused(ModelError, proto, "index out of range")
    assert (error.node, error.operator, error.found) == ("the Gather", "Gather", 5)


def test_declared_type_of_an_output():
    proto = model([node("Relu", ["x"])])
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", INT64, [2, 3]))
    refused(ModelError, proto, "output 'y' has another element type")


def test_shapes_that_depend_on_data():
    proto = model(
        [node("Expand", ["c", "x"])], inputs={"x": [2]}, element=INT64, initializers=[tensor("c", 1, np.float32)]
    )
    assert "constants={...}" in str(refused(UnknownValueError, proto, "depends on input data").remedy)
    reduce = model([node("ReduceSum", ["x", "x"])], inputs={"x": [2]}, element=INT64)
    assert "constants={...}" in str(refused(UnknownValueError, reduce, "depends on input data").remedy)


def test_fixed_inputs_of_the_wrong_kind():
    opened = open_model(model([node("Relu", ["x"])], inputs={"x": [2]}))
    with pytest.raises(InputError, match="another element type"):
        import_model(opened, constants={"x": np.array([1j, 2j])})
    with pytest.raises(ShapeError, match="another shape"):
        import_model(opened, constants={"x": np.ones(3, np.float32)})
    with pytest.raises(ShapeError, match="no input of this name"):
        import_model(opened, constants={"z": np.ones(3, np.float32)})


def test_an_operand_that_only_the_host_could_take():
    """Found by mutants: an input of no type, which may be anything, reaches an operator of numbers."""
    proto = model([node("Relu", ["x"])])
    proto.graph.input[0].ClearField("type")
    compiled = glowstone.compile(proto, cache=False)
    with pytest.raises(UnsupportedError, match="operand 'x' is no tensor of numbers") as caught:
        compiled.run({"x": np.array(["a text"], object)})
    assert (caught.value.node, caught.value.operator) == ("the Relu", "Relu")


@pytest.mark.parametrize("extents", [[2], [-1], [2**62], [1] * 70])
def test_texts_that_do_not_fit_their_extents(extents):
    """Found by mutants: attributes and initializers of texts were decoded without a look at their extents."""
    text = helper.make_tensor("words", TensorProto.STRING, [1], [b"word"])
    text.dims[:] = extents
    for proto in (
        model([node("Constant", [], value=text)]),
        model([node("Identity", ["words"])], initializers=[text]),
    ):
        with pytest.raises((ModelError, LimitError)) as caught:
            glowstone.compile(proto, cache=False).run({"x": np.ones((2, 3), np.float32)})
        assert caught.value.file == "<ModelProto>" or proto.graph.initializer


def test_errors_after_the_import_name_the_file(tmp_path):
    path = tmp_path / "large.onnx"
    products = [node("MatMul", ["x", "x"], ["a"]), node("MatMul", ["a", "x"])]
    onnx.save(model(products, inputs={"x": [900, 900]}), path)
    with pytest.raises(LimitError) as caught:
        glowstone.compile(path, cache=False, memory_limit=1)
    assert caught.value.file == str(path)


def test_a_result_behind_those_that_there_are():
    """Found by mutants: one result is named, but a later one than the operator has."""
    error = refused(UnsupportedError, model([node("Relu", ["x"], ["", "y"])]), "a result of the operator")
    assert (error.expected, error.found) == ("at most 1 results", 2)


@pytest.mark.parametrize("depth", [np.inf, np.nan, -1.0, 1e30])
def test_depths_that_are_no_extent(depth):
    """Found by mutants: a depth may be a float, and that infinite."""
    constants = [tensor("d", depth, np.float32), tensor("v", [0, 1])]
    refused(ModelError, model([node("OneHot", ["x", "d", "v"])], initializers=constants), "not a depth")


def test_regions_without_end():
    """Found by reading after that: regions that are constant are computed at compile time."""
    regions = np.array([[0, 0, np.inf, 1], [np.nan, 0, 1, 1], [-np.inf, 0, np.inf, 1]], np.float32)
    constants = [
        tensor("r", np.insert(regions, 0, [0, np.inf, np.nan], axis=1), np.float32),
        tensor("i", np.ones((1, 1, 3, 3)), np.float32),
    ]
    proto = model([node("MaxRoiPool", ["i", "r"], pooled_shape=[1, 1])], initializers=constants)
    with pytest.raises(GlowstoneError, match="index out of range"):
        glowstone.compile(proto, cache=False).run({"x": np.zeros((2, 3), np.float32)})


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_none_come_without_warnings():
    """Found by mutants: bounds that are infinite, in what is computed at compile time."""
    numbers = node("RandomUniform", [], ["a"], low=float("-inf"), high=float("inf"), shape=[2], seed=1.0)
    constant = tensor("c", [[np.inf, -np.inf]] * 2, np.float32)
    proto = model([numbers, node("MatMul", ["c", "c"])], outputs=("y", "a"), initializers=[constant])
    found = glowstone.compile(proto, cache=False).run({"x": np.zeros((2, 3), np.float32)})
    assert np.isnan(found["y"]).all()
    assert np.isnan(found["a"]).all()
