"""Pipelines of scikit-learn, exported by skl2onnx, against scikit-learn itself: every batch with one compiled model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import skl2onnx.common._container
from skl2onnx import to_onnx
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import glowstone

ROWS, FEATURES = 1000, 8
BATCHES = (1, 7, ROWS)
OPSETS = {"": 18, "ai.onnx.ml": 3}
TIE = 1e-4
"""Classes whose scores are nearer than that may be exchanged."""


@dataclass(frozen=True)
class Case:
    """An estimator to be fitted, the number of its classes (0: a regressor, 1: without targets), and its data."""

    make: Callable[[], Any]
    classes: int = 0
    missing: bool = False
    tolerance: float = 2e-5


CASES = {
    "scaler and logistic regression": Case(lambda: make_pipeline(StandardScaler(), LogisticRegression()), 3),
    "logistic regression of two": Case(LogisticRegression, 2),
    "forest of 500": Case(lambda: RandomForestClassifier(500, max_depth=6, random_state=0), 3),
    "forest of two": Case(lambda: RandomForestClassifier(31, random_state=0), 2),
    "forest of regressors": Case(lambda: RandomForestRegressor(40, max_depth=9, random_state=0)),
    "boosting": Case(lambda: GradientBoostingClassifier(n_estimators=15, random_state=0), 3),
    "boosting of two": Case(lambda: GradientBoostingClassifier(n_estimators=15, random_state=0), 2),
    "boosting with missing values": Case(
        lambda: HistGradientBoostingRegressor(max_iter=30, random_state=0), missing=True
    ),
    "support vectors": Case(lambda: SVC(probability=True, random_state=0), 3, tolerance=1e-2),
    "polynomial vectors": Case(lambda: SVC(kernel="poly"), 3),
    "support vector regressor": Case(lambda: SVR(kernel="sigmoid")),
    "one class": Case(OneClassSVM, 1),
    "clusters": Case(lambda: KMeans(5, n_init=1, random_state=0), 1, tolerance=1e-3),
    "neighbours": Case(KNeighborsClassifier, 3),
    "perceptron": Case(lambda: MLPClassifier((16,), max_iter=40, random_state=0), 3),
    "isolation forest": Case(lambda: IsolationForest(n_estimators=30, random_state=0), 1),
    "normalizer and linear vectors": Case(lambda: make_pipeline(Normalizer(), LinearSVC()), 3),
    "naive Bayes": Case(GaussianNB, 3, tolerance=1e-3),
    "imputer, scaler and gradient descent": Case(
        lambda: make_pipeline(SimpleImputer(), RobustScaler(), SGDClassifier(loss="log_loss", random_state=0)),
        3,
        missing=True,
    ),
    "polynomial features": Case(lambda: make_pipeline(PolynomialFeatures(2), LogisticRegression()), 2),
}


def data(case: Case) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows and targets."""
    if case.classes > 1:
        x, y = make_classification(ROWS, FEATURES, n_informative=5, n_classes=case.classes, random_state=1)
    else:
        x, y = make_regression(ROWS, FEATURES, noise=2.0, random_state=1)
    x = x.astype(np.float32)
    if case.missing:
        x[np.random.default_rng(2).random(x.shape) < 0.1] = np.nan
    return x, None if case.classes == 1 else y


def expected_scores(model: Any, x: np.ndarray) -> np.ndarray | None:
    """What the second output of a classifier holds; None for a model without one."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(x)
    if not hasattr(model, "decision_function"):
        return None
    scores = model.decision_function(x)
    return np.stack([-scores, scores], axis=1) if hasattr(model, "classes_") and scores.ndim == 1 else scores


def fitted(case: Case) -> tuple[Any, np.ndarray]:
    x, y = data(case)
    return case.make().fit(x[::2], None if y is None else y[::2]), x


@pytest.fixture(autouse=True)
def _integers_for_booleans(monkeypatch):
    """skl2onnx writes lists of booleans for histogram boosting, which protobuf no longer takes for integers."""
    make_node = skl2onnx.common._container.make_node

    def with_integers(*arguments, **attributes):
        for name, value in attributes.items():
            if isinstance(value, list) and any(isinstance(entry, bool | np.bool_) for entry in value):
                attributes[name] = [int(entry) for entry in value]
        return make_node(*arguments, **attributes)

    monkeypatch.setattr(skl2onnx.common._container, "make_node", with_integers)


def exported(model: Any, x: np.ndarray, zipmap: bool | str = False) -> Any:
    last = model[-1] if isinstance(model, Pipeline) else model
    options: Any = {"zipmap": zipmap} if hasattr(model, "classes_") else None
    if isinstance(last, LinearSVC):
        options = {id(last): {"raw_scores": True}}
    return to_onnx(model, x[:1], options=options, target_opset=OPSETS)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_pipelines(name):
    case = CASES[name]
    model, x = fitted(case)
    compiled = glowstone.compile(exported(model, x))
    for count in BATCHES:
        first, *rest = compiled.run({"X": x[:count]}).values()
        predicted = model.predict(x[:count])
        scores = expected_scores(model, x[:count])
        if case.classes == 0:
            bound = case.tolerance * np.abs(predicted).max()
            np.testing.assert_allclose(first.reshape(predicted.shape), predicted, rtol=0, atol=bound)
            continue
        if scores is not None:
            found = rest[0].reshape(scores.shape)
            bound = case.tolerance * max(1, np.abs(scores).max())
            np.testing.assert_allclose(found, scores, rtol=0, atol=bound)
        clear = np.ones(count, bool)
        if scores is not None and scores.ndim == 2:
            top = np.sort(scores, axis=1)
            clear = top[:, -1] - top[:, -2] > TIE
        np.testing.assert_array_equal(first.reshape(predicted.shape)[clear], predicted[clear])
