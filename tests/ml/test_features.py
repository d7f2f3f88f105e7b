"""Scaling, normalizing, picking and encoding of features, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.ml import by_onnx_runtime, here, ml_model
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import ExecutionError, GlowstoneError

random = np.random.default_rng(31)
FLOATS = random.standard_normal((7, 5)).astype(np.float32)
NUMBER_TYPES = (np.float32, np.float64, np.int64, np.int32)


def check(kind, feeds, output, version=1, expected=None, **attributes):
    """One result, as ONNX Runtime (or `expected`) has it."""
    model = ml_model(kind, feeds, {"y": output}, version=version, **attributes)
    (found,) = here(model, feeds)
    (theirs,) = by_onnx_runtime(model, feeds) if expected is None else expected(model)
    assert (found.shape, found.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(found, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", NUMBER_TYPES)
@pytest.mark.parametrize("count", [1, 5])
def test_scaler(dtype, count):
    offset, scale = FLOATS[0, :count].tolist(), FLOATS[1, :count].tolist()
    check("Scaler", {"x": (9 * FLOATS).astype(dtype)}, np.float32, offset=offset, scale=scale)


@pytest.mark.parametrize("dtype", NUMBER_TYPES)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(dtype, norm):
    x = (9 * FLOATS).astype(dtype)
    x[3] = 0
    x[5] = -np.abs(x[5]) - 1
    check("Normalizer", {"x": x}, np.float32, norm=norm)


@pytest.mark.parametrize("dtype", [np.float32])
def test_binarizer(dtype):
    x = np.array([[-1, 0, 0.25, 0.5, 7]], dtype)
    check("Binarizer", {"x": x}, dtype, threshold=0.25)


def test_binarizer_of_integers():
    x = np.array([[-1, 0, 1, 2, 3]])
    expected = ReferenceEvaluator(ml_model("Binarizer", {"x": x}, {"y": np.int64}, 1, threshold=1.5))
    check("Binarizer", {"x": x}, np.int64, expected=lambda _: expected.run(None, {"x": x}), threshold=1.5)


@pytest.mark.parametrize("replaced", [0.5, float("nan")])
@pytest.mark.parametrize("count", [1, 5])
def test_imputer_of_floats(replaced, count):
    x = FLOATS.copy()
    x[2, 3] = x[4, 0] = replaced
    values = FLOATS[6, :count].tolist()
    check("Imputer", {"x": x}, np.float32, imputed_value_floats=values, replaced_value_float=replaced)


def test_imputer_of_integers():
    x = random.integers(0, 3, (6, 4))
    check("Imputer", {"x": x}, np.int64, imputed_value_int64s=[7, 8, 9, 10], replaced_value_int64=1)


@pytest.mark.parametrize("sizes", [(3, 2), (2, 5), (0, 3)])
def test_feature_vectorizer(sizes):
    feeds = {"a": FLOATS[:, :3], "b": random.integers(0, 9, (7, 2))}
    found = here(ml_model("FeatureVectorizer", feeds, {"y": np.float32}, 1, inputdimensions=list(sizes)), feeds)[0]
    parts = [np.pad(array, ((0, 0), (0, 9)))[:, :size] for array, size in zip(feeds.values(), sizes, strict=True)]
    np.testing.assert_array_equal(found, np.concatenate(parts, axis=1).astype(np.float32))


def test_feature_vectorizer_of_vectors():
    check("FeatureVectorizer", {"a": FLOATS[0, :3], "b": FLOATS[0, 3:]}, np.float32, inputdimensions=[3, 2])


@pytest.mark.parametrize("shape", [(4,), (7, 4), (2, 3, 4)])
@pytest.mark.parametrize("indices", [[1], [[3, 0, 2]], [[1], [1]]])
def test_array_feature_extractor(shape, indices):
    feeds = {"x": random.standard_normal(shape).astype(np.float32), "i": np.array(indices)}
    model = ml_model("ArrayFeatureExtractor", feeds, {"y": np.float32}, 1)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = len(indices)
    np.testing.assert_array_equal(here(model, feeds)[0], by_onnx_runtime(model, feeds)[0])


def test_a_feature_that_is_not_there_is_reported():
    feeds = {"x": FLOATS, "i": np.array([2, 5])}
    with pytest.raises(ExecutionError, match="out of range"):
        here(ml_model("ArrayFeatureExtractor", feeds, {"y": np.float32}, 1), feeds)


# Encoders

KEYS = {"floats": [1.5, -2.0, float("nan"), 0.0, 7.0], "int64s": [5, -3, 100, 0, 7]}
VALUES = {"floats": [0.5, 1.5, -1.0, 2.0, 9.0], "int64s": [4, 3, 2, 1, 0]}
DTYPES = {"floats": np.float32, "int64s": np.int64}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("version", [2, 4])
def test_label_encoders_of_numbers(keys, values, version):
    x = np.array([*KEYS[keys], 3, -3, 99], DTYPES[keys]).reshape(2, 4)
    attributes = {f"keys_{keys}": KEYS[keys], f"values_{values}": VALUES[values]}
    check("LabelEncoder", {"x": x}, DTYPES[values], version, **attributes)
    default = {"default_float": 2.25} if values == "floats" else {"default_int64": 77}
    check("LabelEncoder", {"x": x}, DTYPES[values], version, **attributes, **default)


@pytest.mark.parametrize("keys", [np.float64, np.int64, np.int32, np.int16])
@pytest.mark.parametrize("values", [np.float32, np.float64, np.int16, np.int32, np.int64])
def test_label_encoders_of_tensors(keys, values):
    table = random.permutation(40)[:17]
    pairs = {"keys_tensor": table.astype(keys), "values_tensor": (table * 3 % 11).astype(values)}
    tensors = {name: numpy_helper.from_array(array) for name, array in pairs.items()}
    default = numpy_helper.from_array(np.array([5], values))
    feeds = {"x": random.integers(0, 40, (5, 9)).astype(keys)}
    model = ml_model("LabelEncoder", feeds, {"y": values}, 4, default_tensor=default, **tensors)
    mapping = dict(zip(pairs["keys_tensor"].tolist(), pairs["values_tensor"].tolist(), strict=True))
    expected = np.array([mapping.get(number, 5) for number in feeds["x"].ravel().tolist()], values).reshape(5, 9)
    np.testing.assert_array_equal(here(model, feeds)[0], expected)


def test_of_equal_keys_the_first_counts():
    check("LabelEncoder", {"x": np.array([1, 2, 3])}, np.int64, 2, keys_int64s=[2, 1, 2], values_int64s=[5, 6, 7])


@pytest.mark.parametrize("dtype", NUMBER_TYPES[:3])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_one_hot_encoder(dtype, shape):
    x = np.array([3, 7, 0, 4, 7, -1], dtype).reshape(shape)
    check("OneHotEncoder", {"x": x}, np.float32, cats_int64s=[7, 0, 3])


def test_a_category_that_is_not_there():
    model = ml_model("OneHotEncoder", {"x": np.zeros(2, np.int64)}, {"y": np.float32}, 1, cats_int64s=[7, 0], zeros=0)
    compiled = glowstone.compile(model)
    np.testing.assert_array_equal(compiled.run({"x": np.array([0, 7])})["y"], [[0, 1], [1, 0]])
    with pytest.raises(ExecutionError, match="out of range"):
        compiled.run({"x": np.array([0, 3])})


@pytest.mark.parametrize(
    ("message", "kind", "attributes"),
    [
        ("another length", "Scaler", {"offset": [1.0, 2.0]}),
        ("no norm", "Normalizer", {"norm": "L3"}),
        ("does not fit", "FeatureVectorizer", {"inputdimensions": [1, 2]}),
        ("another length", "Imputer", {"imputed_value_floats": [1.0, 2.0]}),
        ("without keys", "LabelEncoder", {"values_int64s": [1]}),
        ("differ in number", "LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1, 2]}),
        ("another element type", "LabelEncoder", {"keys_int64s": [1], "values_int64s": [2]}),
        ("without categories", "OneHotEncoder", {}),
    ],
)
def test_attributes_that_do_not_go_together_are_refused(message, kind, attributes):
    model = ml_model(kind, {"x": FLOATS}, {"y": np.float32}, 2, **attributes)
    with pytest.raises(GlowstoneError, match=message):
        glowstone.compile(model)
