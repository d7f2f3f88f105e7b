"""Linear models and support vector machines of random numbers, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.ml import by_onnx_runtime, here, ml_model

import glowstone
from glowstone.errors import GlowstoneError

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
"""PROBIT takes probabilities, which these are not: the trees' tests have it."""
KERNELS = {"LINEAR": [0.5, 0.0, 3.0], "POLY": [0.5, 1.0, 3.0], "RBF": [0.3, 0.0, 3.0], "SIGMOID": [0.2, 0.5, 3.0]}
WITHOUT_VECTORS = {"support_vectors": [0.0], "kernel_params": [0.0, 0.0, 0.0]}
"""What ONNX Runtime wants although nothing reads it."""
FEATURES = 6
random = np.random.default_rng(41)
X = random.standard_normal((23, FEATURES)).astype(np.float32)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32).ravel().tolist()


def check(kind, outputs, x=X, **attributes):
    feeds = {"x": x}
    model = ml_model(kind, feeds, outputs, 1, **attributes)
    for found, expected in zip(here(model, feeds), by_onnx_runtime(model, feeds), strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


CLASSES = {"label": np.int64, "scores": np.float32}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(transform, targets):
    numbers = {"coefficients": normal(targets, FEATURES), "intercepts": normal(targets)}
    check("LinearRegressor", {"y": np.float32}, targets=targets, post_transform=transform, **numbers)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("classes", "labels"), [(1, [3, 5]), (2, [3, 5]), (4, [9, 1, 0, 2])])
def test_linear_classifier(transform, classes, labels):
    numbers = {"coefficients": normal(classes, FEATURES), "intercepts": normal(classes)}
    check("LinearClassifier", CLASSES, post_transform=transform, classlabels_ints=labels, **numbers)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_element_types(dtype):
    x = (4 * X).astype(dtype)
    numbers = {"coefficients": normal(3, FEATURES), "intercepts": normal(3)}
    check("LinearClassifier", CLASSES, x, classlabels_ints=[0, 1, 2], **numbers)
    check("SVMClassifier", CLASSES, x, **vector_classes(3, "RBF"), classlabels_ints=[0, 1, 2])


def test_a_vector_is_one_row():
    numbers = {"coefficients": normal(3, FEATURES), "intercepts": normal(3)}
    check("LinearClassifier", CLASSES, X[0], classlabels_ints=[0, 1, 2], **numbers)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_vector_regressor(kernel, one_class):
    numbers = {"coefficients": normal(8), "support_vectors": normal(8, FEATURES), "rho": normal(1)}
    check(
        "SVMRegressor",
        {"y": np.float32},
        n_supports=8,
        kernel_type=kernel,
        kernel_params=KERNELS[kernel],
        one_class=one_class,
        **numbers,
    )


def test_vector_regressor_without_vectors():
    check("SVMRegressor", {"y": np.float32}, coefficients=normal(FEATURES), rho=[0.25], **WITHOUT_VECTORS)


def vector_classes(classes, kernel, probabilities=False):
    counts = [2, 4, 1, 3][:classes]
    pairs = classes * (classes - 1) // 2
    attributes = {
        "vectors_per_class": counts,
        "support_vectors": normal(sum(counts), FEATURES),
        "coefficients": normal(classes - 1, sum(counts)),
        "rho": normal(pairs),
        "kernel_type": kernel,
        "kernel_params": KERNELS[kernel],
    }
    if probabilities:
        attributes |= {"prob_a": (-np.abs(normal(pairs)) - 0.5).tolist(), "prob_b": normal(pairs)}
    return attributes


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("probabilities", [False, True])
def test_vector_classifier(kernel, classes, probabilities):
    attributes = vector_classes(classes, kernel, probabilities)
    check("SVMClassifier", CLASSES, classlabels_ints=[5, 2, 7, 1][:classes], **attributes)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("probabilities", [False, True])
def test_post_transforms_of_vector_classifiers(transform, classes, probabilities):
    attributes = vector_classes(classes, "RBF", probabilities)
    labels = list(range(classes))
    check("SVMClassifier", CLASSES, classlabels_ints=labels, post_transform=transform, **attributes)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("positive", [False, True])
def test_vector_classifier_without_vectors(classes, positive):
    coefficients = np.array(normal(classes, FEATURES))
    held = np.abs(coefficients) if positive else coefficients
    labels = [4, 6, 8][:classes]
    numbers = {"coefficients": held.tolist(), "rho": [0.1], **WITHOUT_VECTORS}
    check("SVMClassifier", CLASSES, classlabels_ints=labels, **numbers)


@pytest.mark.parametrize(
    ("message", "kind", "attributes"),
    [
        ("coefficients is missing", "LinearRegressor", {}),
        ("another length", "LinearRegressor", {"coefficients": normal(7), "targets": 2}),
        ("not one intercept", "LinearRegressor", {"coefficients": normal(FEATURES), "intercepts": normal(3)}),
        ("labels are integers or texts", "LinearClassifier", {"coefficients": normal(FEATURES)}),
        ("fewer labels", "LinearClassifier", {"coefficients": normal(3 * FEATURES), "classlabels_ints": [0, 1]}),
        ("no kernel", "SVMClassifier", {**vector_classes(2, "RBF"), "kernel_type": "X", "classlabels_ints": [0, 1]}),
        ("does not fit", "SVMClassifier", {**vector_classes(2, "RBF"), "classlabels_ints": [0, 1, 2]}),
        ("no post transform", "SVMRegressor", {"coefficients": normal(6), "rho": [0.0], "post_transform": "X"}),
    ],
)
def test_attributes_that_do_not_go_together_are_refused(message, kind, attributes):
    outputs = {"y": np.float32} if kind.endswith("Regressor") else CLASSES
    with pytest.raises(GlowstoneError, match=message):
        glowstone.compile(ml_model(kind, {"x": X}, outputs, 1, **attributes))
