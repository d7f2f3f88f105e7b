"""Sequences, optionals, texts and images: models of them against onnx's own evaluator, and faults of their use."""

from __future__ import annotations

import io

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, TypeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import ExecutionError, GlowstoneError, InputError, ModelError

FLOAT, INT64, STRING, UINT8, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.STRING,
    TensorProto.UINT8,
    TensorProto.BOOL,
)
node = helper.make_node
info = helper.make_tensor_value_info
sequence_info = helper.make_tensor_sequence_value_info
random = np.random.default_rng(61)


def optional_info(name, element, shape):
    inner = helper.make_tensor_type_proto(element, shape)
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def model_of(nodes, inputs, outputs, constants=None, opset=20):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "host", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def check(model, feeds):
    """Results are those of onnx's evaluator; returns them and the model."""
    compiled = glowstone.compile(model)
    found = compiled.run(feeds)
    for mine, theirs in zip(found.values(), ReferenceEvaluator(model).run(None, feeds), strict=True):
        assert_same(mine, theirs)
    return found, compiled


def assert_same(mine, theirs):
    if isinstance(theirs, list):
        assert isinstance(mine, list)
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other)
        return
    theirs = np.asarray(theirs)
    assert mine.shape == theirs.shape
    if mine.dtype.kind == "f":
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    else:
        np.testing.assert_array_equal(mine, theirs)


def test_sequences_of_known_structure_leave_nothing_to_the_host():
    nodes = [
        node("SplitToSequence", ["x", "parts"], ["s"], axis=1),
        node("SequenceAt", ["s", "last"], ["tail"]),
        node("SequenceErase", ["s"], ["shorter"]),
        node("SequenceInsert", ["shorter", "tail", "front"], ["turned"]),
        node("ConcatFromSequence", ["turned"], ["y"], axis=1),
        node("SequenceLength", ["turned"], ["n"]),
        node("SequenceConstruct", ["tail", "tail"], ["pair"]),
        node("ConcatFromSequence", ["pair"], ["stacked"], axis=0, new_axis=1),
    ]
    constants = {"parts": np.array([2, 1, 3]), "last": np.array(-1), "front": np.array(0)}
    outputs = [info("y", FLOAT, [2, 6]), info("n", INT64, []), info("stacked", FLOAT, [2, 2, 3])]
    model = model_of(nodes, [info("x", FLOAT, [2, 6])], outputs, constants)
    _, compiled = check(model, {"x": random.standard_normal((2, 6)).astype(np.float32)})
    report = compiled.report()
    assert report["host_steps"] == 0
    assert "parts" not in report  # an ordinary model, of one program


def test_sequences_whose_structure_is_data():
    nodes = [
        node("Neg", ["x"], ["negative"]),
        node("SplitToSequence", ["negative"], ["rows"], axis=0, keepdims=0),
        node("SequenceAt", ["rows", "place"], ["row"]),
        node("Exp", ["row"], ["y"]),
        node("SequenceLength", ["rows"], ["n"]),
        node("SequenceErase", ["rows", "place"], ["left"]),
    ]
    inputs = [info("x", FLOAT, ["n", 3]), info("place", INT64, [])]
    outputs = [info("y", FLOAT, [3]), info("n", INT64, []), sequence_info("left", FLOAT, [3])]
    model = model_of(nodes, inputs, outputs)
    for rows, place in ((4, 2), (1, 0), (6, -2)):
        x = random.standard_normal((rows, 3)).astype(np.float32)
        _, compiled = check(model, {"x": x, "place": np.array(place)})
    assert compiled.report()["host_steps"] == 4
    with pytest.raises(ExecutionError, match="out of range") as caught:
        compiled.run({"x": x, "place": np.array(6)})
    assert caught.value.operator in ("SequenceAt", "SequenceErase")


def test_sequences_as_inputs_and_outputs():
    nodes = [node("SequenceInsert", ["s", "x"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)]
    inputs = [sequence_info("s", FLOAT, None), info("x", FLOAT, ["n"])]
    model = model_of(nodes, inputs, [sequence_info("t", FLOAT, None), info("y", FLOAT, ["m"])])
    first, second, x = (random.standard_normal(count).astype(np.float32) for count in (2, 0, 3))
    found, compiled = check(model, {"s": [first, second], "x": x})
    assert [item.kind for item in compiled.inputs] == ["seq(tensor)", "tensor"]
    found["t"][0][:] = 0
    assert first.any()  # results are not the caller's arrays
    with pytest.raises(InputError, match="does not fit"):
        compiled.run({"s": x, "x": x})


def sequence_map(body, inputs):
    return node("SequenceMap", inputs, [output.name for output in body.output], body=body)


def test_a_body_for_every_item():
    body = helper.make_graph(
        [node("MatMul", ["a", "w"], ["p"]), node("Add", ["p", "b"], ["sums"]), node("Shape", ["a"], ["shapes"])],
        "each",
        [info("a", FLOAT, None), info("b", FLOAT, None)],
        [info("sums", FLOAT, None), info("shapes", INT64, None)],
    )
    inputs = [sequence_info("s", FLOAT, None), info("bias", FLOAT, [2])]
    outputs = [sequence_info("sums", FLOAT, None), sequence_info("shapes", INT64, None)]
    w = random.standard_normal((3, 2)).astype(np.float32)
    model = model_of([sequence_map(body, ["s", "bias"])], inputs, outputs, {"w": w})
    items = [random.standard_normal((rows, 3)).astype(np.float32) for rows in (1, 4, 0, 2)]
    bias = np.ones(2, np.float32)
    compiled = glowstone.compile(model)
    found = compiled.run({"s": items, "bias": bias})
    for item, mine, shape in zip(items, found["sums"], found["shapes"], strict=True):
        np.testing.assert_allclose(mine, item @ w + bias, rtol=1e-5, atol=1e-6)
        assert tuple(shape) == item.shape
    assert compiled.run({"s": [], "bias": bias}) == {"sums": [], "shapes": []}


@pytest.mark.parametrize("given", [None, np.array([1.0, -2.0], np.float32)], ids=["empty", "full"])
def test_optionals(given):
    then = helper.make_graph(
        [node("OptionalGetElement", ["x"], ["e"]), node("Abs", ["e"], ["a"])], "t", [], [info("a", FLOAT, None)]
    )
    otherwise = helper.make_graph([node("Identity", ["rest"], ["b"])], "e", [], [info("b", FLOAT, None)])
    nodes = [
        node("OptionalHasElement", ["x"], ["has"]),
        node("If", ["has"], ["y"], then_branch=then, else_branch=otherwise),
    ]
    inputs = [optional_info("x", FLOAT, None), info("rest", FLOAT, ["n"])]
    model = model_of(nodes, inputs, [info("y", FLOAT, None), info("has", BOOL, None)])
    rest = np.zeros(3, np.float32)
    found = glowstone.compile(model).run({"x": given, "rest": rest})
    np.testing.assert_array_equal(found["y"], rest if given is None else np.abs(given))
    assert bool(found["has"]) is (given is not None)


def test_an_empty_optional_has_no_element():
    model = model_of(
        [node("OptionalGetElement", ["x"], ["y"])], [optional_info("x", FLOAT, [2])], [info("y", FLOAT, [2])]
    )
    with pytest.raises(ExecutionError, match="an optional is empty"):
        glowstone.compile(model).run({"x": None})


def test_an_optional_made_of_nothing():
    kind = TypeProto()
    kind.tensor_type.elem_type = FLOAT
    nodes = [node("Optional", [], ["o"], type=kind), node("OptionalHasElement", ["o"], ["y"])]
    assert not glowstone.compile(model_of(nodes, [], [info("y", BOOL, [])])).run({})["y"]


def texts(*values):
    return np.array(values, object)


def test_texts():
    nodes = [
        node("StringConcat", ["x", "end"], ["longer"]),
        node("StringSplit", ["longer"], ["parts", "counts"], delimiter="-"),
        node("RegexFullMatch", ["x"], ["matches"], pattern="[a-z]+-.*"),
        node("Equal", ["x", "other"], ["same"]),
        node("Mul", ["counts", "counts"], ["squares"]),
    ]
    inputs = [info(name, STRING, ["n"]) for name in ("x", "other")]
    outputs = [info(name, STRING, None) for name in ("longer", "parts")]
    outputs += [info("counts", INT64, None), *(info(name, BOOL, None) for name in ("matches", "same"))]
    outputs.append(info("squares", INT64, None))
    constants = {"end": texts("-ü")}
    x, other = texts("a-b", "", "Ü-c-d"), texts("a-b", "x", "Ü")
    found, compiled = check(model_of(nodes, inputs, outputs, constants), {"x": x, "other": other})
    assert found["squares"].tolist() == [9, 4, 16]
    assert compiled.report()["host_steps"] == 4
    assert compiled.report()["instructions"]  # the product is compiled


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ["Monday", "tuesday", "Monday"]),
        ({"stopwords": ["monday"], "case_change_action": "UPPER"}, ["TUESDAY"]),
        (
            {"stopwords": ["monday"], "is_case_sensitive": 1, "case_change_action": "LOWER"},
            ["monday", "tuesday", "monday"],
        ),
        ({"stopwords": ["Monday", "tuesday"], "is_case_sensitive": 1}, [""]),
    ],
)
def test_normalized_texts(attributes, expected):
    nodes = [node("StringNormalizer", ["x"], ["y"], **attributes)]
    compiled = glowstone.compile(model_of(nodes, [info("x", STRING, ["n"])], [info("y", STRING, None)]))
    words = texts("Monday", "tuesday", "Monday")
    assert compiled.run({"x": words})["y"].tolist() == expected
    for wrong in (words.reshape(3, 1), np.array("one", object)):
        with pytest.raises(GlowstoneError):
            compiled.run({"x": wrong})


def test_moves_of_texts():
    nodes = [
        node("Reshape", ["x", "shape"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[1, 0]),
        node("Concat", ["t", "t"], ["c"], axis=1),
        node("Gather", ["c", "places"], ["g"], axis=0),
        node("Slice", ["g", "start", "end", "axis"], ["s"]),
        node("Unsqueeze", ["s", "axis"], ["u"]),
        node("Shape", ["u"], ["extents"]),
    ]
    constants = {"shape": np.array([2, -1]), "places": np.array([2, 0]), "start": np.array([1])}
    constants |= {"end": np.array([3]), "axis": np.array([1])}
    outputs = [info("u", STRING, None), info("extents", INT64, None)]
    check(model_of(nodes, [info("x", STRING, [6])], outputs, constants), {"x": texts(*"abcdef")})


def test_numbers_and_texts():
    nodes = [node("Cast", ["x"], ["t"], to=STRING), node("Cast", ["t"], ["y"], to=FLOAT)]
    model = model_of(nodes, [info("x", FLOAT, ["n"])], [info("t", STRING, None), info("y", FLOAT, None)])
    x = np.array([1.5, -0.1, 3e20, np.inf, -np.inf, np.nan], np.float32)
    found = glowstone.compile(model).run({"x": x})
    np.testing.assert_array_equal(found["y"], x)
    assert found["t"].tolist()[3:] == ["INF", "-INF", "NaN"]
    read = model_of([node("Cast", ["x"], ["y"], to=INT64)], [info("x", STRING, ["n"])], [info("y", INT64, None)])
    with pytest.raises(ExecutionError, match="a text is no number"):
        glowstone.compile(read).run({"x": texts("12", "many")})


@pytest.mark.parametrize("pattern", ["(a", "(?=a)", r"(a)\1", "a" * 2000])
def test_patterns_that_are_refused(pattern):
    nodes = [node("RegexFullMatch", ["x"], ["y"], pattern=pattern)]
    with pytest.raises(ModelError, match="pattern"):
        glowstone.compile(model_of(nodes, [info("x", STRING, ["n"])], [info("y", BOOL, None)])).run({"x": texts("a")})


@pytest.mark.parametrize("pixels", ["RGB", "BGR", "Grayscale"])
@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM"])
def test_images(kind, pixels):
    from PIL import Image

    picture = random.integers(0, 256, (5, 4, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(picture).save(file, kind)
    nodes = [node("ImageDecoder", ["x"], ["image"], pixel_format=pixels), node("Cast", ["image"], ["y"], to=FLOAT)]
    model = model_of(nodes, [info("x", UINT8, ["n"])], [info("y", FLOAT, None)])
    compiled = glowstone.compile(model)
    found = compiled.run({"x": np.frombuffer(file.getvalue(), np.uint8)})["y"]
    if pixels == "Grayscale":
        gray = picture @ np.array([0.299, 0.587, 0.114])
        np.testing.assert_allclose(found[:, :, 0], gray, atol=1)
    else:
        np.testing.assert_array_equal(found, picture if pixels == "RGB" else picture[:, :, ::-1])
    broken = np.frombuffer(file.getvalue()[:20] + b"nothing", np.uint8)
    assert compiled.run({"x": broken})["y"].size == 0


ML = helper.make_opsetid("ai.onnx.ml", 3)


def runtime(model, feeds):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@pytest.mark.parametrize("labels", [["no", "perhaps", "yes"], [7, 3, 5]], ids=["texts", "numbers"])
def test_classes_and_their_scores_as_maps(labels):
    is_text = isinstance(labels[0], str)
    name = "classlabels_strings" if is_text else "classlabels_int64s"
    linear = {"classlabels_strings" if is_text else "classlabels_ints": labels}
    weights = random.standard_normal(12).astype(np.float32)
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=weights,
            intercepts=[0.1, 0.0, -0.1],
            post_transform="SOFTMAX",
            **linear,
        ),
        helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", **{name: labels}),
    ]
    kind = STRING if is_text else INT64
    keyed = helper.make_map_type_proto(kind, helper.make_tensor_type_proto(FLOAT, []))
    outputs = [info("label", kind, None), helper.make_value_info("maps", helper.make_sequence_type_proto(keyed))]
    graph = helper.make_graph(nodes, "classes", [info("x", FLOAT, ["n", 4])], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), ML], ir_version=9)
    compiled = glowstone.compile(model)
    for rows in (5, 1):
        x = random.standard_normal((rows, 4)).astype(np.float32)
        found, expected = list(compiled.run({"x": x}).values()), runtime(model, {"x": x})
        assert found[0].tolist() == expected[0].tolist()
        for mine, theirs in zip(found[1], expected[1], strict=True):
            assert mine.keys() == theirs.keys()
            np.testing.assert_allclose([mine[key] for key in theirs], list(theirs.values()), rtol=1e-5)
    assert compiled.report()["host_steps"] == (2 if is_text else 1)


def test_maps_as_vectors():
    node_ = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"])
    keyed = helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, []))
    graph = helper.make_graph([node_], "map", [helper.make_value_info("x", keyed)], [info("y", FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), ML], ir_version=9)
    given = {"c": np.float32(2.5), "a": np.float32(-1)}
    assert glowstone.compile(model).run({"x": given})["y"].tolist() == [[-1, 0, 2.5]]


def test_encoders_before_they_had_keys():
    """LabelEncoder-1: texts stand for their places, and places for them."""
    nodes = [
        helper.make_node(
            "LabelEncoder", ["x"], ["n"], domain="ai.onnx.ml", classes_strings=["a", "b"], default_int64=7
        ),
        helper.make_node("LabelEncoder", ["n"], ["y"], domain="ai.onnx.ml", classes_strings=["a", "b"]),
    ]
    outputs = [info("n", INT64, None), info("y", STRING, None)]
    graph = helper.make_graph(nodes, "encoders", [info("x", STRING, ["n"])], outputs)
    old = helper.make_opsetid("ai.onnx.ml", 1)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10), old], ir_version=5)
    found = glowstone.compile(model).run({"x": texts("b", "c", "a")})
    assert found["n"].tolist() == [1, 7, 0]
    assert found["y"].tolist() == ["b", "_Unused", "a"]


def test_encoders_of_texts():
    encoder = {"keys_strings": ["a", "b"], "values_int64s": [4, 9], "default_int64": -3}
    nodes = [
        helper.make_node("LabelEncoder", ["x"], ["numbers"], domain="ai.onnx.ml", **encoder),
        helper.make_node("OneHotEncoder", ["x"], ["ones"], domain="ai.onnx.ml", cats_strings=["b", "c"]),
        helper.make_node(
            "CategoryMapper", ["x"], ["mapped"], domain="ai.onnx.ml", cats_strings=["c", "a"], cats_int64s=[1, 2]
        ),
        node("Add", ["numbers", "mapped"], ["sum"]),
    ]
    outputs = [info("sum", INT64, None), info("ones", FLOAT, None)]
    graph = helper.make_graph(nodes, "encoders", [info("x", STRING, ["n"])], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), ML], ir_version=9)
    x = texts("a", "b", "c", "")
    found, expected = list(glowstone.compile(model).run({"x": x}).values()), runtime(model, {"x": x})
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
