import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, mean_absolute_error, mean_squared_error
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.scoring import metrics
from thresholdout.scoring.out_of_fold import out_of_fold


def test_classification_metrics_are_scikit_learns() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    probability = model.predict_proba(X)
    assert metrics.accuracy().of(model, X, y).mean() == pytest.approx(accuracy_score(y, model.predict(X)))
    assert metrics.zero_one_loss().of(model, X, y).mean() == pytest.approx(1 - accuracy_score(y, model.predict(X)))
    assert metrics.log_loss(50.0).of(model, X, y).mean() == pytest.approx(log_loss(y, probability))
    half_brier = np.mean(np.sum((probability - np.eye(3)[y]) ** 2, axis=1)) / 2
    assert metrics.brier_score().of(model, X, y).mean() == pytest.approx(half_brier)


def test_two_class_brier_score_and_text_labels() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["no", "yes"])[(y == 1).astype(int)]
    model = LogisticRegression(max_iter=1000).fit(X, names)
    expected = brier_score_loss(y == 1, model.predict_proba(X)[:, 1])
    assert metrics.brier_score().of(model, X, names).mean() == pytest.approx(expected)
    assert metrics.accuracy().of(model, X, names).mean() == pytest.approx(accuracy_score(names, model.predict(X)))


def test_regression_metrics_are_scikit_learns_until_they_are_clipped() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(X, y)
    predicted = model.predict(X)
    assert metrics.squared_error(1e9).of(model, X, y).mean() == pytest.approx(mean_squared_error(y, predicted))
    assert metrics.absolute_error(1e9).of(model, X, y).mean() == pytest.approx(mean_absolute_error(y, predicted))
    assert metrics.absolute_error(10.0).of(model, X, y).max() == 10.0
    assert metrics.squared_error(10.0).bounds == (0.0, 10.0)


def test_a_class_unseen_in_training_costs_the_most() -> None:
    X = np.zeros((2, 1))
    model = DummyClassifier(strategy="constant", constant=0).fit(X, [0, 0])
    y = np.array([0, 9])
    assert metrics.brier_score().of(model, X, y).tolist() == [0.0, 1.0]
    assert metrics.log_loss(4.0).of(model, X, y).tolist() == [0.0, 4.0]


def test_cross_validated_values_are_out_of_fold() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 150)), rng.integers(0, 2, size=200)
    model = LogisticRegression(C=1e6, max_iter=5000).fit(X, y)
    assert metrics.accuracy().of(model, X, y).mean() > 0.95  # fits noise
    found = out_of_fold(model, X, y, list(StratifiedKFold(5).split(X, y)), "predict")
    assert abs(metrics.accuracy().of_predictions(found, X, y).mean() - 0.5) < 0.15


@for_each("name", ["roc_auc", "neg_log_loss", "neg_brier_score", "squared_error", "absolute_error", ""])
def test_unknown_names_say_what_to_use(name: str) -> None:
    with pytest.raises(InputError, match="metric must be"):
        metrics.get_metric(name)


def test_refusals() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputTypeError, match="predict_proba"):
        metrics.log_loss().of(LinearSVC().fit(X, y), X, y)
    with pytest.raises(InputTypeError, match="metric"):
        metrics.get_metric(3)  # type: ignore[arg-type]
    for clip in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="clip"):
            metrics.squared_error(clip)
    with pytest.raises(InputError, match="shape"):
        metrics.accuracy().values(y, y[:-1], None)
    with pytest.raises(InputError, match="sum to 1"):
        metrics.log_loss().values(y[:1], np.array([[0.5, 0.2, 0.2]]), np.arange(3))
    with pytest.raises(InputError, match="classes_"):
        metrics.log_loss().values(y[:1], np.array([[0.5, 0.2, 0.3]]), np.arange(2))
    with pytest.raises(InputError, match="finite"):
        metrics.absolute_error(1.0).values(np.array([1.0]), np.array([np.nan]), None)
