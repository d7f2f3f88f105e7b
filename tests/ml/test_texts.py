"""Texts and maps around compiled parts, against ONNX Runtime and scikit-learn."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers.ml import ML_DOMAIN, by_onnx_runtime, here, ml_model
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import glowstone
from glowstone.errors import ExecutionError, ModelError

WORDS = np.array(["red", "green", "blue", "none", "green"], object)
KEYS = {"strings": ["green", "red", "blue"], "int64s": [5, -3, 7], "floats": [0.5, -1.0, 7.0]}
OPSETS = {"": 18, "ai.onnx.ml": 3}


def check(kind, feeds, output, version=3, **attributes):
    model = ml_model(kind, feeds, {"y": output}, version, **attributes)
    for found, expected in zip(here(model, feeds), by_onnx_runtime(model, feeds), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("values", KEYS)
@pytest.mark.parametrize("defaults", [{}, {"default_string": "?", "default_int64": 99, "default_float": 2.5}])
def test_label_encoders_from_and_to_texts(keys, values, defaults):
    kinds = {"strings": object, "int64s": np.int64, "floats": np.float32}
    x = WORDS if keys == "strings" else np.array([*KEYS[keys], 1, 2]).astype(kinds[keys])
    attributes = {f"keys_{keys}": KEYS[keys], f"values_{values}": KEYS[values][::-1], **defaults}
    if "strings" in (keys, values) or keys != values:
        check("LabelEncoder", {"x": x}, kinds[values], 2, **attributes)


@pytest.mark.parametrize("x", [WORDS.reshape(1, 5), np.array([[2, 0], [7, 1]])])
def test_encoders_of_listed_classes(x):
    output = np.int64 if x.dtype == object else object
    check("LabelEncoder", {"x": x}, output, 1, classes_strings=["green", "red", "blue"])
    check("CategoryMapper", {"x": x}, output, 1, cats_strings=["green", "red", "blue"], cats_int64s=[2, 7, 1])


@pytest.mark.parametrize("shape", [(5,), (5, 1), (1, 5)])
def test_one_hot_encoder_of_texts(shape):
    check("OneHotEncoder", {"x": WORDS.reshape(shape)}, np.float32, 1, cats_strings=["green", "red", "blue"])


def test_a_text_that_is_no_category():
    model = ml_model("OneHotEncoder", {"x": WORDS}, {"y": np.float32}, 1, cats_strings=["red"], zeros=0)
    with pytest.raises(ExecutionError, match="no category"):
        here(model, {"x": WORDS})


def test_array_feature_extractor_of_texts():
    feeds = {"x": WORDS[:4].reshape(2, 2), "i": np.array([1, 0, 1])}
    model = ml_model("ArrayFeatureExtractor", feeds, {"y": object}, 1)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 3
    np.testing.assert_array_equal(here(model, feeds)[0], by_onnx_runtime(model, feeds)[0])


# Maps


def map_model(kind: str, key: int, value: int, output: int, **attributes) -> onnx.ModelProto:
    node = helper.make_node(kind, ["x"], ["y"], domain=ML_DOMAIN, **attributes)
    x = helper.make_value_info("x", helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, [])))
    graph = helper.make_graph([node], "one", [x], [helper.make_tensor_value_info("y", output, None)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML_DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


FLOATS = {3: 0.5, 0: 1.5, 2: -2.0}


@pytest.mark.parametrize("form", [{"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 5}])
@pytest.mark.parametrize(
    ("target", "number"),
    [("TO_FLOAT", TensorProto.FLOAT), ("TO_INT64", TensorProto.INT64)],
)
def test_cast_map(form, target, number):
    model = map_model("CastMap", TensorProto.INT64, TensorProto.FLOAT, number, cast_to=target, **form)
    found, expected = here(model, {"x": FLOATS})[0], by_onnx_runtime(model, {"x": FLOATS})[0]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("words", [["b", "c", "a"], ["c"]])
def test_dict_vectorizer(words):
    model = map_model(
        "DictVectorizer", TensorProto.STRING, TensorProto.FLOAT, TensorProto.FLOAT, string_vocabulary=words
    )
    feeds = {"x": {"a": 1.5, "b": 2.5}}
    found, expected = here(model, feeds)[0], by_onnx_runtime(model, feeds)[0]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


# Pipelines


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("make", [lambda: RandomForestClassifier(9, random_state=0), LogisticRegression, SVC])
@pytest.mark.parametrize("texts", [False, True])
def test_labels_and_maps_of_classifiers(make, classes, texts):
    x, y = make_classification(120, 6, n_informative=4, n_classes=classes, random_state=3)
    x = x.astype(np.float32)
    model = make().fit(x, WORDS[:3][y].astype(str) if texts else y)
    exported = to_onnx(model, x[:1], options={"zipmap": True}, target_opset=OPSETS)
    before = exported.SerializeToString()
    compiled = glowstone.compile(exported)
    session = onnxruntime.InferenceSession(before, providers=["CPUExecutionProvider"])
    for count in (1, 7, 100):
        labels, maps = compiled.run({"X": x[:count]}).values()
        expected_labels, expected_maps = session.run(None, {"X": x[:count]})
        assert labels.tolist() == list(expected_labels)
        assert len(maps) == count
        for found, expected in zip(maps, expected_maps, strict=True):
            assert list(found) == list(expected)
            np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-4, atol=1e-5)
    assert exported.SerializeToString() == before, "the model given is left as it is"


@pytest.mark.parametrize("integers", [[], [3, 4]])
def test_labels_of_two_kinds_or_none_are_refused(integers):
    attributes = {"classlabels_ints": integers, "classlabels_strings": ["a", "b"]} if integers else {}
    feeds, outputs = {"x": np.zeros((2, 3), np.float32)}, {"label": object, "scores": np.float32}
    model = ml_model("LinearClassifier", feeds, outputs, 1, coefficients=[1.0] * 6, intercepts=[0.0] * 2, **attributes)
    with pytest.raises(ModelError, match="integers or texts"):
        here(model, feeds)


def test_columns_of_texts_and_numbers():
    random = np.random.default_rng(4)
    colours, sizes = random.choice(["red", "green", "blue"], 300), random.choice(["s", "m", "l"], 300)
    numbers = random.standard_normal((300, 2)).astype(np.float32)
    numbers[::9, 1] = np.nan
    y = (colours == "red") * 1 + (np.nan_to_num(numbers[:, 1]) > 0)
    rows = np.concatenate([numbers.astype(object), colours[:, None], sizes[:, None]], axis=1)
    transformer = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
            ("texts", OneHotEncoder(handle_unknown="ignore"), [2, 3]),
        ]
    )
    model = make_pipeline(transformer, LogisticRegression()).fit(rows, y)
    types = [("numbers", FloatTensorType([None, 2])), ("texts", StringTensorType([None, 2]))]
    exported = to_onnx(model, initial_types=types, options={"zipmap": False}, target_opset=OPSETS)
    compiled = glowstone.compile(exported)
    for count in (1, 7, 300):
        feeds = {"numbers": numbers[:count], "texts": rows[:count, 2:]}
        labels, probabilities = compiled.run(feeds).values()
        np.testing.assert_array_equal(labels, model.predict(rows[:count]))
        np.testing.assert_allclose(probabilities, model.predict_proba(rows[:count]), atol=1e-5)
