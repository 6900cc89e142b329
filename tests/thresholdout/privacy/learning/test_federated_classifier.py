"""The classifier by federated averaging: scikit-learn's conventions, local steps, its report, privacy about clients."""

import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits

from tests.cases import for_each
from tests.estimator_checks import each_check
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import FederatedRound, SelfComposed, best_epsilon
from thresholdout.privacy.learning import FederatedClassifier
from thresholdout.privacy.learning.federated import AT_ONCE, ClientModels, client_numbers


@pytest.mark.slow
@each_check(
    [FederatedClassifier(noise_multiplier=0), FederatedClassifier(rounds=10, noise_multiplier=1.0, average=False)]
)
@pytest.mark.filterwarnings("ignore")
def test_estimator_checks(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


def data(clients: int = 60, classes: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(clients), rng.integers(1, 9, clients))
    X = rng.normal(size=(groups.size, 4))
    y = np.argmax(X @ rng.normal(size=(4, classes)) + 0.1 * rng.normal(size=(groups.size, classes)), axis=1)
    shuffled = rng.permutation(groups.size)
    return X[shuffled], y[shuffled], groups[shuffled]


def softmax_steps(X: Any, y: Any, classes: int, W: Any, steps: int, rate: float, alpha: float) -> Any:
    """Gradient steps on the mean cross-entropy of one client, record by record."""
    for _ in range(steps):
        gradient = alpha * W
        gradient[-1] = 0.0
        for row, label in zip(X, y, strict=True):
            weights = np.exp(row @ W)
            weights = weights / weights.sum()
            gradient += np.outer(row, weights - np.eye(classes)[label]) / len(y)
        W = W - rate * gradient
    return W


def test_one_round_by_another_program() -> None:
    X, y, groups = data()
    model = FederatedClassifier(
        rounds=2, local_steps=3, learning_rate=0.3, clip=0.8, noise_multiplier=0, alpha=0.1, average=False
    ).fit(X, y, groups)
    ones = np.column_stack([X, np.ones(len(X))])
    W = np.zeros((5, 3))
    for _ in range(2):
        moves = []
        for client in np.unique(groups):
            own = groups == client
            move = softmax_steps(ones[own], y[own], 3, W, 3, 0.3, 0.1) - W
            moves.append(move / max(1.0, np.linalg.norm(move) / 0.8))
        W = W + np.mean(moves, axis=0)
    np.testing.assert_allclose(model.coef_, W[:4].T, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, W[4], atol=1e-12)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def test_a_client_s_increment_does_not_depend_on_who_else_is_asked() -> None:
    """To the last bit: otherwise one client could move the sum of the others."""
    rng = np.random.default_rng(0)
    clients = np.repeat(np.arange(80), rng.integers(1, 40, 80))
    X = rng.normal(size=(clients.size, 33))
    models = ClientModels(X, rng.integers(0, 7, clients.size), 7, clients, 3, 0.5, np.full((33, 1), 0.01))
    theta = rng.normal(size=33 * 7)
    together = models.increments(np.arange(80), theta)
    assert np.isfinite(together).all()
    for size in (1, 1, 1, 2, 3, 7, 20, 40, 79):
        some = rng.choice(80, size, replace=False)
        np.testing.assert_array_equal(models.increments(some, theta), together[some])


@pytest.mark.slow
def test_many_clients_are_worked_on_in_parts() -> None:
    size = AT_ONCE // 100
    X = np.random.default_rng(0).normal(size=(size + 5, 100))
    models = ClientModels(X, np.arange(size + 5) % 2, 2, np.arange(size + 5), 1, 1.0, np.zeros((100, 1)))
    found = models.increments(np.arange(size + 5), np.zeros(200))
    np.testing.assert_allclose(found[:, 1], np.where(np.arange(size + 5) % 2 == 1, 0.5, -0.5) * X[:, 0], atol=1e-12)


@pytest.mark.slow
@for_each("size", [None, 1, 7])
def test_replacing_a_client_moves_a_round_by_the_sensitivity_at_most(size: int | None) -> None:
    X, y, groups = data()
    other_X, other_y = X.copy(), y.copy()
    own = groups == 11
    other_X[own], other_y[own] = -1e5 * X[own], (y[own] + 1) % 3
    options: dict[str, Any] = {"rounds": 1, "noise_multiplier": 0, "average": False, "clients_per_round": size}
    for seed in range(12):
        ends = [
            FederatedClassifier(random_state=seed, classes=[0, 1, 2], **options).fit(*each, groups)
            for each in ((X, y), (other_X, other_y))
        ]
        moved = sum(
            (Fraction(float(a)) - Fraction(float(b))) ** 2
            for name in ("coef_", "intercept_")
            for a, b in zip(*(np.ravel(getattr(end, name)) for end in ends), strict=True)
        )
        assert moved <= (Fraction(2) / (size or 60)) ** 2


@pytest.mark.slow
def test_the_report() -> None:
    X, y, groups = data()
    model = FederatedClassifier(epsilon=2.0, delta=1e-4, rounds=20, clients_per_round=15, classes=[0, 1, 2])
    report = model.fit(X, y, groups).privacy_report_
    assert 1.99 < report.epsilon <= 2.0
    assert report.private
    assert report.unit == "client"
    assert report.delta == 1e-4
    assert report.event is not None
    assert report.event == SelfComposed(FederatedRound(report.noise_multiplier / 15, 15, 60), 20)
    assert report.epsilon == best_epsilon(report.event, 1e-4).epsilon
    assert report.epsilon < report.details["epsilon by composition"]
    assert report.details["clients"] == model.n_clients_ == 60
    assert not any("random_state" in words for words in report.assumptions)
    seeded = FederatedClassifier(noise_multiplier=5.0, random_state=0).fit(X, y, groups).privacy_report_
    assert any("random_state" in words for words in seeded.assumptions)
    assert seeded.leaks == ("the set of classes, which was taken from the labels; give classes",)
    assert not seeded.private
    nothing = FederatedClassifier(noise_multiplier=0).fit(X, y, groups).privacy_report_
    assert math.isinf(nothing.epsilon)
    assert "about a client" in str(nothing)
    little = FederatedClassifier(noise_multiplier=0.009, random_state=0).fit(X, y, groups).privacy_report_
    assert little.event is None
    assert not little.private


def test_without_groups_each_record_is_a_client() -> None:
    X, y, _ = data()
    one = FederatedClassifier(noise_multiplier=3.0, random_state=0).fit(X, y)
    other = FederatedClassifier(noise_multiplier=3.0, random_state=0).fit(X, y, np.arange(len(X)))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.n_clients_ == len(X)


def test_groups_of_many_kinds() -> None:
    assert client_numbers(["b", "a", "b"], 3).tolist() == [1, 0, 1]
    assert client_numbers(pd.Series(["b", "a", "b"]), 3).tolist() == [1, 0, 1]
    assert client_numbers([2.5, -1.0, 2.5], 3).tolist() == [1, 0, 1]
    wrong: list[Any] = [[1, 2], [[1], [2], [3]], [1.0, math.nan, 2.0], ["a", None, "b"], [[1], [2, 3], [4]], 3]
    for groups in wrong:
        with pytest.raises(InputError, match="groups"):
            client_numbers(groups, 3)
    with pytest.raises(InputTypeError, match="groups"):
        client_numbers(np.array(["a", 1, 2], dtype=object), 3)


def test_two_classes_and_their_names() -> None:
    X, y, groups = data(classes=2)
    names = np.array(["no", "yes"])[y]
    model = FederatedClassifier(noise_multiplier=0, rounds=100).fit(X, names, groups)
    assert model.coef_.shape == (1, 4)
    assert model.score(X, names) > 0.9
    odds = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-odds)), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.where(odds > 0, "yes", "no"))
    more = FederatedClassifier(noise_multiplier=0, classes=["yes", "no", "maybe"]).fit(X, names, groups)
    assert more.classes_.tolist() == ["maybe", "no", "yes"]
    assert more.coef_.shape == (3, 4)
    assert "maybe" not in more.predict(X)
    flat = FederatedClassifier(noise_multiplier=0, fit_intercept=False).fit(X, names, groups)
    assert flat.intercept_.tolist() == [0.0]


def test_a_client_whose_steps_diverge_counts_as_nothing() -> None:
    X, y, groups = data(classes=2)
    wild = X.copy()
    wild[groups == 3] = 1e300
    calm = FederatedClassifier(noise_multiplier=0, rounds=1, learning_rate=1e10, average=False, clip=1e-3)
    assert np.isfinite(calm.fit(wild, y, groups).coef_).all()


@pytest.mark.statistical
def test_averaging_costs_nothing_and_has_less_noise() -> None:
    X, y, groups = data(classes=2)
    spread = {}
    for average in (True, False):
        ends = [
            FederatedClassifier(noise_multiplier=40.0, rounds=40, learning_rate=2.0, average=average, random_state=seed)
            .fit(X, y, groups)
            .coef_
            for seed in range(20)
        ]
        spread[average] = float(np.std(ends, axis=0).mean())
    assert spread[True] < 0.9 * spread[False]


@pytest.mark.slow
def test_seeds_pickles_clones_and_frames() -> None:
    X, y, groups = data()
    model = FederatedClassifier(noise_multiplier=4.0, random_state=5, clients_per_round=20)
    one, again = model.fit(X, y, groups).coef_, clone(model).fit(X, y, groups).coef_
    np.testing.assert_array_equal(one, again)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = clone(model).fit(frame, y, groups)
    assert named.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(named)).predict(frame), named.predict(frame))


@pytest.mark.slow
def test_digits_of_clients_with_five_images() -> None:
    """Without noise about 0.92; with epsilon 4 about every client's five images still 0.9."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16, y[order]
    model = FederatedClassifier(epsilon=4.0, classes=range(10), random_state=1)
    model.fit(X[:1437], y[:1437], np.arange(1437) // 5)
    assert model.score(X[1437:], y[1437:]) > 0.85
    assert model.privacy_report_.epsilon <= 4.0


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rounds": 0}, "rounds"),
    ({"local_steps": 0}, "local_steps"),
    ({"learning_rate": 0.0}, "learning_rate"),
    ({"learning_rate": math.nan}, "learning_rate"),
    ({"clip": 0.0}, "clip"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": math.inf}, "epsilon"),
    ({"epsilon": 1e-9, "delta": 1e-15}, "target_epsilon"),
    ({"delta": 0.0}, "delta"),
    ({"delta": 1.0}, "delta"),
    ({"noise_multiplier": -1.0}, "noise_multiplier"),
    ({"noise_multiplier": 1e9}, "noise_multiplier"),
    ({"alpha": -1.0}, "alpha"),
    ({"clients_per_round": 0}, "clients_per_round"),
    ({"clients_per_round": 61}, "clients_per_round must be at most 60, .*; got 61"),
    ({"classes": [0, 1]}, "y"),
    ({"classes": [0]}, "classes"),
    ({"random_state": -1}, "random_state"),
]
BAD_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"rounds": 1.0}, "rounds"),
    ({"learning_rate": "fast"}, "learning_rate"),
    ({"epsilon": None}, "epsilon"),
    ({"noise_multiplier": True}, "noise_multiplier"),
    ({"clients_per_round": 0.5}, "clients_per_round"),
    ({"classes": [0, "a", None]}, "classes"),
    ({"random_state": "0"}, "random_state"),
]


@for_each(("named", "message"), BAD)
def test_values_that_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FederatedClassifier(**named).fit(*data())


@for_each(("named", "message"), BAD_TYPES)
def test_types_that_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FederatedClassifier(**named).fit(*data())


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match=r"y must be .*; got one class"):
        FederatedClassifier().fit(np.zeros((4, 1)), np.zeros(4))
