"""Estimators of expectation propagation: the conventions of scikit-learn, refusals, and what a private fit says."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from tests.cases import for_each
from tests.estimator_checks import each_check
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import best_epsilon
from thresholdout.privacy.accounting.accountants.calibration import METHODS
from thresholdout.privacy.learning.privacy_report import LowSignalWarning
from thresholdout.privacy.learning.propagation.ep_linear_models import EPClassifier, EPLinearRegression
from thresholdout.privacy.learning.propagation.fitting import (
    LooseDeltaWarning,
    LowInformationWarning,
    UnprovedTargetWarning,
)
from thresholdout.privacy.learning.propagation.mixture import EPGaussianMixture


@pytest.mark.slow
@each_check(
    [
        EPLinearRegression(n_epochs=3),
        EPLinearRegression(algorithm="sep", n_epochs=2, sampling="shuffle"),
        EPClassifier(n_epochs=5),
        EPClassifier(link="logit", n_epochs=3),
        EPGaussianMixture(3, n_epochs=5),
    ]
)
def test_conventions_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def regression(N: int = 200, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d))
    return X, X @ np.arange(1.0, d + 1) + 0.5 * rng.normal(size=N)


def private(**settings: Any) -> EPLinearRegression:
    given: dict[str, Any] = {
        "algorithm": "dp-sep",
        "n_epochs": 2,
        "clip_norm": 2.0,
        "sigma": 2.0,
        "fit_intercept": False,
        "random_state": 0,
    }
    return EPLinearRegression(**(given | settings))


def quietly(fit: Callable[[], Any]) -> Any:
    """Fit without the warnings that a small data set deserves."""
    with warnings.catch_warnings():
        for kind in (LowSignalWarning, LowInformationWarning):
            warnings.simplefilter("ignore", kind)
        return fit()


def fitted(X: np.ndarray, y: np.ndarray, **settings: Any) -> Any:
    return quietly(lambda: private(**settings).fit(X, y))


def test_linear_regression_is_ridge_regression_and_knows_its_uncertainty() -> None:
    X, y = regression()
    found = EPLinearRegression(noise_var=0.25, prior_precision=2.0, fit_intercept=False).fit(X, y)
    ridge = Ridge(alpha=0.5, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(found.coef_, ridge.coef_, rtol=1e-9)
    mean, std = found.predict(X[:5], return_std=True)
    cov = np.linalg.inv(2 * np.eye(3) + X.T @ X / 0.25)
    np.testing.assert_allclose(std**2, np.diag(X[:5] @ cov @ X[:5].T) + 0.25)
    gaps = y[:5] - mean
    density = np.mean(-(gaps**2) / (2 * std**2) - np.log(std * math.sqrt(2 * math.pi)))
    assert found.log_likelihood(X[:5], y[:5]) == pytest.approx(density)
    assert set(found.posterior()) == {"eta", "Lam", "mean", "cov"}
    assert found.n_skipped_ == 0
    assert not found.privacy_report_.private


def test_scaling_changes_units_only() -> None:
    X, y = regression()
    units = EPLinearRegression(noise_var=0.25, standardize=True, prior_precision=1e-9).fit(X, y)
    other = EPLinearRegression(noise_var=25.0, standardize=True, prior_precision=1e-9).fit(3 + 7 * X, 40 + 10 * y)
    np.testing.assert_allclose(other.coef_, units.coef_ * 10 / 7, rtol=1e-8)
    np.testing.assert_allclose(other.predict(3 + 7 * X), 40 + 10 * units.predict(X), rtol=1e-8)
    first, second = units.predict(X, return_std=True)[1], other.predict(3 + 7 * X, return_std=True)[1]
    np.testing.assert_allclose(second, 10 * first, rtol=1e-8)
    public = EPLinearRegression(
        noise_var=0.25, x_offset=X.mean(0), x_scale=X.std(0), y_offset=y.mean(), y_scale=y.std(), prior_precision=1e-9
    )
    np.testing.assert_allclose(public.fit(X, y).coef_, units.coef_)
    constant = EPLinearRegression(standardize=True).fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
    assert np.isfinite(constant.coef_).all()


@pytest.mark.slow
def test_classifiers_average_over_the_posterior() -> None:
    X, y = regression()
    labels = np.where(y > 0, "yes", "no")
    for link in ("probit", "logit"):
        found = EPClassifier(link=link).fit(X, labels)
        assert found.classes_.tolist() == ["no", "yes"]
        assert found.score(X, labels) > 0.9
        proba = found.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert ((proba[:, 1] > 0.5) == (found.predict(X) == "yes")).all()
        of_label = proba[np.arange(len(X)), (labels == "yes").astype(int)]
        assert found.log_likelihood(X, labels) == pytest.approx(np.log(of_label).mean())
        np.testing.assert_allclose(found.decision_function(X), X @ found.coef_[0] + found.intercept_)
    flipped = EPClassifier(classes=["yes", "no"]).fit(X, labels)
    np.testing.assert_allclose(flipped.predict_proba(X)[:, 0], EPClassifier().fit(X, labels).predict_proba(X)[:, 1])
    assert EPClassifier(classes=[0, 1]).fit(X, np.zeros(len(X))).predict(X).max() == 0


@pytest.mark.slow
def test_mixtures_find_clusters() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[-3.0, 0.0], [0.0, 3.0], [3.0, 0.0]])
    truth = rng.integers(3, size=150)
    X = centers[truth] + 0.5 * rng.normal(size=(150, 2))
    exact = np.array([X[truth == j].mean(axis=0) for j in range(3)])
    for algorithm, near in (("ep", 0.01), ("sep", 0.15)):
        found = EPGaussianMixture(3, prior_mean=centers + 0.5, algorithm=algorithm, n_epochs=8, random_state=0).fit(X)
        assert (found.labels_ == truth).all()
        np.testing.assert_allclose(found.means_, exact, atol=near)
    assert found.log_likelihood(X) == found.score(X)
    assert found.predict_proba(X)[np.arange(150), truth].min() > 0.9
    with pytest.warns(LowSignalWarning):
        noisy = EPGaussianMixture(3, algorithm="dp-sep", clip_norm=5.0, sigma=2.0, n_epochs=2, random_state=0).fit(X)
    assert not hasattr(noisy, "labels_")


@pytest.mark.slow
def test_the_report_of_a_private_fit() -> None:
    X, y = regression(500)
    found = fitted(X, y, sigma=3.0)
    report = found.privacy_report_
    assert report.private
    assert report.adjacency == "replace_one"
    details = report.details
    assert details["n_releases"] == 1000
    assert found.gamma_ == 500
    assert details["sensitivity"] == pytest.approx(2 * 500 * 2.0 / 500)
    assert details["noise_std"] == pytest.approx(3.0 * 4.0)
    assert details["sampling"] == "uniform"
    assert "order" in details["how"]
    assert report.event is not None
    assert report.epsilon == best_epsilon(report.event, report.delta, accountants=METHODS["rdp"]).epsilon
    assert any("random_state stays secret" in text for text in report.assumptions)
    assert not hasattr(found, "n_failed_sites_")
    assert not hasattr(found, "n_skipped_")
    assert found.stationary_noise_std_ == pytest.approx(3.0 * 2.0 * math.sqrt(2 * 500))
    assert found.noise_std_ < found.stationary_noise_std_
    shown = fitted(X, y, allow_leaks=True, random_state=None)
    assert shown.n_failed_sites_ == 0
    assert not shown.privacy_report_.private
    assert not any("random_state" in text for text in shown.privacy_report_.assumptions)


@pytest.mark.slow
def test_targets_are_met() -> None:
    X, y = regression(150)
    for sampling in ("uniform", "cyclic"):
        found = fitted(X, y, sigma=None, epsilon=2.0, sampling=sampling)
        assert 1.9 < found.privacy_report_.epsilon <= 2.0
    split = fitted(X, y, sigma=None, epsilon=2.0, clip_mode="separate", budget_split=(0.8, 0.2))
    assert split.privacy_report_.epsilon <= 2.0
    first, second = split.privacy_report_.details["sigma"]
    assert second / first == pytest.approx(2.0)
    assert split.privacy_report_.details["n_releases"] == 600
    assert len(split.noise_std_) == 2
    both = fitted(X, y, sigma=(2.0, 3.0), clip_mode="separate")
    assert both.privacy_report_.noise_multiplier == pytest.approx(1 / math.sqrt(1 / 4 + 1 / 9))
    published = fitted(X, y, sigma=None, epsilon=2.0, accountant="wbk")
    assert published.privacy_report_.epsilon <= 2.0
    assert published.privacy_report_.details["formula_epsilon"] <= 2.0


@pytest.mark.slow
def test_all_accountants_are_no_worse_than_renyi_divergences() -> None:
    X, y = regression(60)
    some, best = (fitted(X, y, sampling="cyclic", sigma=5.0, accountant=name) for name in ("rdp", "best"))
    assert best.privacy_report_.epsilon <= some.privacy_report_.epsilon


def test_a_formula_that_is_not_proved_does_not_get_into_the_report() -> None:
    X, y = regression(60)
    with pytest.warns(UnprovedTargetWarning):
        found = fitted(X, y, sigma=None, epsilon=1.0, accountant="tight")
    assert found.privacy_report_.epsilon > 1.0 >= found.privacy_report_.details["formula_epsilon"]


@pytest.mark.slow
def test_warnings_about_what_can_be_learned() -> None:
    X, y = regression(40)
    with pytest.warns(LowInformationWarning):
        EPLinearRegression(algorithm="sep", gamma="paper", n_epochs=2).fit(X, y)
    with pytest.warns(LowSignalWarning):
        assert private(sigma=50.0).fit(X, y).signal_to_noise_ < 1
    with pytest.warns(LooseDeltaWarning):
        fitted(X, y, delta=0.1)


def test_fits_can_be_repeated_by_seed_only() -> None:
    X, y = regression(60)
    one, two, three = (fitted(X, y, random_state=seed) for seed in (0, 0, 1))
    assert (one.coef_ == two.coef_).all()
    assert (one.coef_ != three.coef_).any()
    fresh = [fitted(X, y, random_state=None).coef_ for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()
    assert not any(isinstance(value, np.random.Generator) for value in vars(one).values())


def test_data_dependent_scaling_is_no_private_step() -> None:
    X, y = regression(60)
    with pytest.raises(InputError, match="standardize"):
        private(standardize=True).fit(X, y)
    found = fitted(X, y, standardize=True, allow_leaks=True)
    assert not found.privacy_report_.private
    assert len(found.privacy_report_.leaks) == 2


def test_one_record_is_hidden_by_no_other() -> None:
    X, y = np.ones((1, 1)), np.ones(1)
    with pytest.raises(InputError, match="one record"):
        private().fit(X, y)
    found = fitted(X, y, sampling="cyclic", sigma=5.0)
    assert math.isfinite(found.privacy_report_.epsilon)


@for_each(
    "settings",
    [
        {"clip_norm": None},
        {"clip_norm": 0.0},
        {"clip_norm": -1.0},
        {"gamma": 0.0},
        {"gamma": 61.0},
        {"gamma": "large"},
        {"n_epochs": 0},
        {"sigma": None, "epsilon": 0.0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"sigma": 1.0, "epsilon": 1.0},
        {"sigma": None},
        {"sigma": 0.0},
        {"sampling": "shuffle", "accountant": "tight"},
        {"sampling": "cyclic", "accountant": "wbk"},
        {"sampling": "poisson"},
        {"accountant": "moments"},
        {"prior_precision": 0.0},
        {"prior_precision": -np.eye(3)},
        {"prior_precision": np.ones((3, 3))},
        {"prior_precision": 5.0, "prior_norm": "check"},
        {"noise_var": 0.0},
        {"rho": 0.0},
        {"clip_mode": "layers"},
        {"algorithm": "adf", "clip_norm": None, "sigma": None},
        {"algorithm": "sep", "clip_norm": None},
        {"algorithm": "ep", "sigma": None},
        {"algorithm": "clipped-sep", "sigma": None, "clip_norm": None},
        {"algorithm": "vi"},
        {"clip_mode": "separate", "budget_split": (0.8, 0.3), "sigma": None, "epsilon": 1.0},
        {"clip_mode": "separate", "budget_split": (0.8,), "sigma": None, "epsilon": 1.0},
        {"clip_mode": "separate", "budget_split": (0.8, 0.2)},
        {"sigma": (1.0, 2.0)},
        {"x_scale": 0.0},
        {"x_offset": [1.0, 2.0]},
        {"y_scale": math.nan},
        {"x_offset": 1.0, "standardize": True, "allow_leaks": True},
        {"random_state": -1},
        {"prior_mean": [1.0, 2.0]},
    ],
    ids=str,
)
def test_refusals(settings: dict[str, Any]) -> None:
    X, y = regression(60)
    with pytest.raises(InputError):
        fitted(X, y, **settings)


@for_each(
    ("estimator", "X", "y"),
    [
        (EPClassifier(), np.eye(3), [0, 1, 2]),
        (EPClassifier(), np.eye(3), [0, 0, 0]),
        (EPClassifier(classes=[0, 1]), np.eye(3), [0, 1, 2]),
        (EPClassifier(classes=[0, 0]), np.eye(3), [0, 1, 0]),
        (EPClassifier(link="log"), np.eye(3), [0, 1, 0]),
        (EPGaussianMixture(2, weights=[0.5, 0.6]), np.eye(3), None),
        (EPGaussianMixture(2, noise_var=0.0), np.eye(3), None),
        (EPGaussianMixture(0), np.eye(3), None),
        (EPGaussianMixture(2, prior_mean="zero"), np.eye(3), None),
        (EPGaussianMixture(2, prior_mean=np.eye(3)), np.eye(3), None),
        (EPLinearRegression(), np.full((3, 1), np.nan), [0.0, 1.0, 2.0]),
        (EPLinearRegression(), np.eye(3), [0.0, np.inf, 2.0]),
    ],
)
def test_refusals_of_data(estimator: Any, X: Any, y: Any) -> None:
    with pytest.raises(ValueError):
        estimator.fit(X, y)


@pytest.mark.statistical
def test_more_records_bring_the_private_answer_nearer_to_the_exact_one() -> None:
    """Medians over seeds; the noise multiplier is the same, so the epsilon of more records is even smaller."""
    excess = []
    for N in (500, 2000):
        found = []
        for seed in range(5):
            X, y = regression(N, 3, seed)
            exact = EPLinearRegression(noise_var=0.25, fit_intercept=False).fit(X, y)
            noisy = private(sigma=0.8, noise_var=0.25, n_epochs=3, random_state=seed).fit(X, y)
            found.append(float(np.linalg.norm(noisy.coef_ - exact.coef_)))
        excess.append(float(np.median(found)))
    assert excess[1] < 0.5 * excess[0]
