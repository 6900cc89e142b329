"""What the two estimators do with data, and what they refuse."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.terminal import bars_at_once
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.learning import DivergedWarning, DPSGDClassifier, DPSGDRegressor

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.integers(0, 3, 60)
T = X @ [1.0, -1.0, 0.5] + 2.0


def classifier(hidden: tuple[int, ...] = (), **parameters: Any) -> DPSGDClassifier:
    return DPSGDClassifier(
        hidden,
        **{
            "classes": [0, 1, 2],
            "batch_size": 10,
            "n_steps": 8,
            "noise_multiplier": 2.0,
            "average": False,
            **parameters,
        },
    )


@pytest.mark.slow
def test_classes_taken_from_labels_are_a_leak() -> None:
    assert classifier(batch_size=60).fit(X, Y).privacy_report_.leaks == ()
    taken = classifier(classes=None, batch_size=60).fit(X, Y)
    assert not taken.privacy_report_.private
    assert "classes" in taken.privacy_report_.leaks[0]
    assert "NOT covered" in str(taken.privacy_report_)
    assert taken.partial_fit(X, Y).privacy_report_.leaks == taken.privacy_report_.leaks
    assert classifier(classes=None, batch_size=60).partial_fit(X, Y, classes=[2, 0, 1]).privacy_report_.leaks == ()


def test_classes_without_records() -> None:
    model = classifier(classes=["c", "a", "b", "d"]).fit(X, np.array(["a", "b", "c"])[Y])
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c", "d"])
    assert model.predict_proba(X).shape == (60, 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@for_each("sampling", ["wor", "wr", "poisson"])
def test_seeds_give_the_same_and_others_do_not(sampling: Any) -> None:
    first, again, other = (classifier(sampling=sampling, random_state=seed).fit(X, Y).coef_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    one, two = (classifier(sampling=sampling).fit(X, Y).coef_ for _ in range(2))
    assert not np.allclose(one, two)


def test_calls_with_one_seed_have_different_noise() -> None:
    zero = np.zeros((60, 3))
    model = classifier(random_state=3, fit_intercept=False, learning_rate=1.0).partial_fit(zero, Y)
    first = model.coef_.copy()
    second = model.partial_fit(zero, Y).coef_ - first
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.9
    assert not np.allclose(first, second)


@pytest.mark.slow
def test_nothing_random_is_kept() -> None:
    model = classifier().fit(X, Y)
    assert b"Generator" not in pickle.dumps(model)
    assert b"PCG64" not in pickle.dumps(model)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.privacy_report_ == model.privacy_report_
    assert not hasattr(clone(model), "privacy_report_")


def test_averages() -> None:
    seen: list[Any] = []

    def keep(step: int, layers: Any) -> None:
        seen.append(layers[0].weights.copy())

    for average, start in ((True, 0), (3, 3), (0, 0)):
        seen.clear()
        model = classifier(average=average, random_state=0, callback=keep).fit(X, Y)
        np.testing.assert_allclose(model.coefs_[0], np.mean(seen[start:], axis=0), atol=1e-12)
        model.partial_fit(X, Y, n_steps=2)
        np.testing.assert_allclose(model.coefs_[0], np.mean(seen[start:], axis=0), atol=1e-12)
    assert classifier(average=100, random_state=0).fit(X, Y).coef_ is not None
    np.testing.assert_array_equal(
        classifier(average=100, random_state=0).fit(X, Y).coef_, classifier(random_state=0).fit(X, Y).coef_
    )


def test_the_later_half_of_a_call_is_averaged_by_default() -> None:
    seen: list[Any] = []

    def keep(step: int, layers: Any) -> None:
        seen.append(layers[0].weights.copy())

    model = DPSGDClassifier(noise_multiplier=2.0, n_steps=7, classes=[0, 1, 2], random_state=0, callback=keep).fit(X, Y)
    np.testing.assert_allclose(model.coefs_[0], np.mean(seen[3:], axis=0), atol=1e-12)
    model.partial_fit(X, Y, n_steps=4)
    np.testing.assert_allclose(model.coefs_[0], np.mean(seen[7 + 2 :], axis=0), atol=1e-12)
    model.partial_fit(X, Y, n_steps=1)
    np.testing.assert_allclose(model.coefs_[0], seen[-1], atol=1e-12)
    with pytest.raises(InputError, match="average"):
        classifier(average="suffix").fit(X, Y)


def test_features_are_brought_to_public_bounds() -> None:
    plain = classifier(random_state=0).fit(np.clip(X / 2 + 0.5, 0, 1), Y)
    bounded = classifier(random_state=0, feature_bounds=(-1, [1, 1, 1])).fit(X, Y)
    np.testing.assert_allclose(bounded.coef_, plain.coef_)
    np.testing.assert_allclose(bounded.decision_function(X), plain.decision_function(np.clip(X / 2 + 0.5, 0, 1)))
    scaled = classifier(random_state=0, feature_norm=0.5).fit(X, Y)
    rows = X * np.minimum(1, 0.5 / np.linalg.norm(X, axis=1))[:, None]
    np.testing.assert_allclose(scaled.coef_, classifier(random_state=0).fit(rows, Y).coef_)
    assert np.isfinite(scaled.decision_function(np.full((1, 3), 1e300))).all()


def test_targets_are_brought_to_public_bounds() -> None:
    parameters: dict[str, Any] = {"noise_multiplier": 2.0, "n_steps": 8, "batch_size": 10, "random_state": 0}
    bounded = DPSGDRegressor(target_bounds=(-1, 5), **parameters).fit(X, T)
    plain = DPSGDRegressor(**parameters).fit(X, np.clip((T - 2) / 3, -1, 1))
    np.testing.assert_allclose(bounded.coef_, plain.coef_)
    np.testing.assert_allclose(bounded.predict(X), 2 + 3 * plain.predict(X))
    np.testing.assert_allclose(bounded.set_params(target_bounds=None).predict(X), 2 + 3 * plain.predict(X))
    assert bounded.intercept_ == pytest.approx(plain.intercept_)
    assert DPSGDRegressor(**parameters, fit_intercept=False).fit(X, T).intercept_ == 0.0


def test_regression_without_noise_finds_the_line() -> None:
    model = DPSGDRegressor(noise_multiplier=0.0, batch_size=60, n_steps=800, clip_norm=100.0, learning_rate=0.3)
    model.fit(X, T)
    np.testing.assert_allclose(model.coef_, [1.0, -1.0, 0.5], atol=1e-6)
    assert model.intercept_ == pytest.approx(2.0, abs=1e-6)


@pytest.mark.slow
def test_networks_learn_what_lines_cannot() -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (2000, 2))
    labels = (points[:, 0] * points[:, 1] > 0).astype(int)
    common: dict[str, Any] = {"classes": [0, 1], "batch_size": 200, "n_steps": 600, "random_state": 0}
    for activation in ("relu", "tanh"):
        model = DPSGDClassifier(
            (16,), activation=activation, learning_rate=2.0, noise_multiplier=2.0, clip_norm=0.5, **common
        ).fit(points, labels)
        assert model.score(points, labels) > 0.85
        assert [weights.shape for weights in model.coefs_] == [(2, 16), (16, 2)]
        with pytest.raises(AttributeError, match="coefs_"):
            _ = model.coef_
        with pytest.raises(AttributeError, match="intercepts_"):
            _ = model.intercept_
    assert DPSGDClassifier(noise_multiplier=0.0, **common).fit(points, labels).score(points, labels) < 0.65
    model = DPSGDRegressor((16,), noise_multiplier=1.0, learning_rate=0.3, batch_size=200, n_steps=600, random_state=0)
    assert model.fit(points, labels).score(points, labels) > 0.3
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="hidden"):
            getattr(model, name)


def test_a_penalty_shrinks() -> None:
    """All records in each step and no noise: gradient descent, which draws nothing."""
    exact: dict[str, Any] = {"batch_size": 60, "noise_multiplier": 0.0, "n_steps": 300}
    free, held = (classifier(l2=l2, **exact).fit(X, Y).coef_ for l2 in (0.0, 0.5))
    assert np.linalg.norm(held) < 0.5 * np.linalg.norm(free)


def test_all_records_at_every_step() -> None:
    model = classifier(batch_size=60).fit(X, Y)
    assert "GaussianAnswer(std=2.0, sensitivity=2.0)" in repr(model.privacy_report_.event)


def test_automatic_batches() -> None:
    assert classifier(batch_size="auto").fit(X, Y).batch_size_ == 60
    assert classifier(batch_size="auto", sampling="wr").fit(X, Y).batch_size_ == 30
    public = classifier(batch_size="auto", adjacency="add_remove", public_size=40, sampling="poisson")
    assert public.fit(X, Y).batch_size_ == 20  # of the public number
    assert public.set_params(n_steps=None, n_epochs=2.5).fit(X, Y).n_steps_ == 5
    assert public.fit(X[:20], Y[:20]).n_steps_ == 5


def test_huge_and_tiny_rows_are_trained_on_in_silence() -> None:
    rows, targets = X.copy(), T.copy()
    rows[:3], targets[3:6] = [[1e300], [-1e200], [1e-320]], [1e300, -1e160, 1e-310]
    for model in (
        classifier((5,), noise_multiplier=0.0, random_state=0).fit(rows, Y),
        DPSGDRegressor((5,), noise_multiplier=0.0, n_steps=8, random_state=0, batch_size=60).fit(rows, targets),
    ):
        assert all(np.isfinite(weights).all() for weights in model.coefs_)
        assert np.abs(model.coefs_[0]).max() < 10


def test_divergence_is_said() -> None:
    model = classifier(learning_rate=1e10, l2=1e10, n_steps=40)
    with pytest.warns(DivergedWarning, match="learning_rate"):
        model.fit(X, Y)
    assert model.privacy_report_.details["steps"] == 40


def test_progress() -> None:
    with bars_at_once() as terminal:
        classifier(verbose=1).fit(X, Y)
    shown = terminal.getvalue()
    assert "DPSGDClassifier:   0%|          | 0/8" in shown
    assert "loss" not in shown


@for_each(
    ("parameters", "match"),
    [
        ({"batch_size": 61}, "batch_size"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": "half"}, "batch_size"),
        ({"batch_size": 60, "sampling": "wr"}, "batch_size"),
        ({"batch_size": 60, "sampling": "poisson"}, "batch_size"),
        ({"batch_size": 60, "adjacency": "add_remove", "public_size": 60}, "batch_size"),
        ({"epsilon": 1.0}, "epsilon"),
        ({"epsilon": 0.0, "noise_multiplier": None}, "epsilon"),
        ({"epsilon": np.inf, "noise_multiplier": None}, "epsilon"),
        ({"noise_multiplier": 1e-3}, "noise_multiplier"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_multiplier": np.nan}, "noise_multiplier"),
        ({"noise_multiplier": [1.0, 2.0]}, "noise_multiplier"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"sampling": "shuffle"}, "sampling"),
        ({"activation": "gelu"}, "activation"),
        ({"adjacency": "zero_out"}, "adjacency"),
        ({"adjacency": "add_remove"}, "public_size"),
        ({"adjacency": "add_remove", "public_size": 61}, "public_size"),
        ({"public_size": 60}, "public_size"),
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"clip_norm": np.inf}, "clip_norm"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"l2": -1.0}, "l2"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_epochs": 0.0}, "n_epochs"),
        ({"feature_bounds": (1.0, 1.0)}, "feature_bounds"),
        ({"feature_bounds": (0.0, np.inf)}, "feature_bounds"),
        ({"feature_bounds": (np.zeros(2), np.ones(2))}, "feature_bounds"),
        ({"feature_bounds": (np.zeros(2), np.ones(3))}, "feature_bounds"),
        ({"feature_norm": 0.0}, "feature_norm"),
        ({"classes": [1]}, "classes"),
        ({"classes": [0, 1]}, "y"),
        ({"classes": ["a", "b"]}, "y"),
        ({"average": -1}, "average"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_refused_values(parameters: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        classifier(**parameters).fit(X, Y)


@for_each(
    "parameters",
    [
        {"fit_intercept": 1},
        {"warm_start": "yes"},
        {"callback": 3},
        {"average": 0.5},
        {"n_steps": 2.0},
        {"batch_size": 2.0},
        {"feature_bounds": 1.0},
        {"feature_bounds": ("a", "b")},
        {"noise_multiplier": "much"},
        {"public_size": 3.5, "adjacency": "add_remove"},
        {"random_state": "seed"},
    ],
)
def test_refused_types(parameters: dict[str, Any]) -> None:
    with pytest.raises(InputTypeError, match=next(iter(parameters))):
        classifier(**parameters).fit(X, Y)


def test_refused_networks() -> None:
    with pytest.raises(InputError, match="hidden_layer_sizes"):
        classifier((3, 0)).fit(X, Y)
    with pytest.raises(InputTypeError, match="hidden_layer_sizes"):
        classifier().set_params(hidden_layer_sizes="16").fit(X, Y)


def test_refused_in_later_calls() -> None:
    model = classifier().fit(X, Y)
    with pytest.raises(InputError, match="hidden_layer_sizes"):
        model.set_params(hidden_layer_sizes=(4,)).partial_fit(X, Y)
    with pytest.raises(InputError, match="classes"):
        classifier().fit(X, Y).partial_fit(X, Y, classes=[0, 1, 2, 3])
    with pytest.raises(InputError, match="target_bounds"):
        DPSGDRegressor(noise_multiplier=1.0, target_bounds=([0, 0], [1, 1])).fit(X, T)
