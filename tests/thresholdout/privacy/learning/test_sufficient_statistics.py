"""Linear regression from noisy sufficient statistics: the sensitivity, the law of the noise, the coefficients."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.cases import for_each
from tests.estimator_checks import each_check
from tests.sizes import sizes
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import GaussianAnswer, best_epsilon
from thresholdout.privacy.auditing import audit_outputs
from thresholdout.privacy.learning import LowSignalWarning, SSPRegressor
from thresholdout.privacy.learning.sufficient_statistics import noisy_statistics

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (4000, 3))
Y = X @ [0.5, -0.25, 0.0] + 0.1 + RNG.normal(0, 0.1, 4000)


def released(rows: Any, seed: Any = 0, noise: float = 1e-9) -> Any:
    return noisy_statistics(np.asarray(rows, dtype=float), noise, np.random.default_rng(seed))


def distance(first: Any, second: Any) -> float:
    """Return the Frobenius distance of what two data sets release, with the same noise, so that it cancels."""
    return float(np.linalg.norm(released(first) - released(second)))


def test_no_replaced_record_moves_the_matrix_further_than_the_sensitivity() -> None:
    """Rows of any size, where a rule without cutting would move it by millions; orthogonal ones attain sqrt(2)."""
    rng = np.random.default_rng(1)
    rest = rng.normal(size=(20, 4))
    for _ in range(300):
        one, other = rng.normal(size=(2, 4)) * 10.0 ** rng.uniform(-3, 3, (2, 1))
        assert distance([*rest, one], [*rest, other]) <= math.sqrt(2)
    attained = distance([*rest, [1e3, 0, 0, 0]], [*rest, [0, 1e3, 0, 0]])
    assert attained == pytest.approx(math.sqrt(2), rel=1e-9)
    raw = np.outer([1e3, 0], [1e3, 0]) - np.outer([0, 1e3], [0, 1e3])  # the broken twin: rows that are not cut
    assert np.linalg.norm(raw) > 1e6


@sizes("draws", 700, 2000)
def test_the_noise_is_a_gaussian_on_symmetric_matrices(draws: int) -> None:
    """Coordinates are standard normal after division by multiplier times sqrt(2); error 1e-9 by Kolmogorov-Smirnov."""
    size, noise = 4, 3.0
    found = np.array([released(np.zeros((1, size)), seed, noise) for seed in range(draws)])
    assert (found == found.transpose(0, 2, 1)).all()
    diagonal = found[:, np.arange(size), np.arange(size)].ravel()
    beside = math.sqrt(2) * found[:, *np.triu_indices(size, 1)].ravel()
    for values in (diagonal, beside):
        assert stats.kstest(values / (noise * math.sqrt(2)), "norm").pvalue > 1e-9
        assert stats.kstest(values / (noise * math.sqrt(2) * 0.7), "norm").pvalue < 1e-9  # noise that is 30 % less


@pytest.mark.slow
def test_the_report_is_that_of_one_gaussian_answer() -> None:
    """Balle and Wang's exact delta of the Gaussian mechanism at the reported epsilon is delta."""
    model = SSPRegressor(epsilon=1.0, delta=1e-5, random_state=0).fit(X, Y)
    mu, epsilon = 1.0 / model.noise_multiplier_, model.privacy_report_.epsilon
    exact = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    assert epsilon <= 1.0
    assert exact == pytest.approx(1e-5, rel=1e-2)
    assert exact <= 1e-5
    assert model.privacy_report_.event == GaussianAnswer(model.noise_multiplier_)
    assert SSPRegressor(noise_multiplier=2.0).fit(X, Y).privacy_report_.epsilon == pytest.approx(
        best_epsilon(GaussianAnswer(2.0), model.delta_).epsilon
    )


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_an_audit_of_the_worst_pair_refutes_half_of_the_noise_and_no_more(scale: float) -> None:
    """Orthogonal rows of norm 1 differ by the sensitivity; a right claim is refuted with probability 1e-9 at most."""
    worlds = []
    for row in ([1.0, 0.0], [0.0, 1.0]):
        draws = np.array([released([row], (seed, int(row[0])), 2.0 * scale) for seed in range(4000)])
        worlds.append(draws[:, 0, 0] - draws[:, 1, 1])
    found = audit_outputs(*worlds, claim=GaussianAnswer(2.0), confidence=1 - 1e-9, random_state=0)
    assert found.refuted is (scale < 1.0)


def test_with_hardly_any_noise_they_are_the_least_squares() -> None:
    """What no bound cuts, against numpy's least squares on the same records in their original units."""
    scaled, target = 5.0 + 2.0 * X, 10.0 + 4.0 * Y
    model = SSPRegressor(noise_multiplier=0.01, feature_bounds=(3, 7), target_bounds=(0, 20), random_state=0)
    model.fit(scaled, target)
    exact = np.linalg.lstsq(np.column_stack([scaled, np.ones(len(X))]), target, rcond=None)[0]
    np.testing.assert_allclose([*model.coef_, model.intercept_], exact, atol=0.02)  # the noise: 5 standard deviations


@pytest.mark.slow
def test_with_noise_it_is_near_the_records_and_never_far_from_a_constant() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = [SSPRegressor(feature_bounds=(-1, 1), random_state=seed).fit(X, Y).score(X, Y) for seed in range(5)]
    best = np.corrcoef(X @ [0.5, -0.25, 0.0], Y)[0, 1] ** 2
    assert best - 0.1 < np.mean(scores) < best
    wide = RNG.uniform(-1, 1, (100, 30))
    with pytest.warns(LowSignalWarning, match="times as many records"):
        models = [SSPRegressor(epsilon=0.1, random_state=seed).fit(wide, Y[:100]) for seed in range(5)]
    assert all(model.score(wide, Y[:100]) > -20 for model in models)  # propagation was at -1e10 and below


@for_each("settings", [{}, {"feature_norm": 0.5}, {"feature_norm": 1e-9}])
def test_a_record_of_any_size_is_one_row_of_norm_1(settings: Any) -> None:
    """Nothing overflows: no error, no warning and no missing number tells that it is there."""
    huge = X.copy()
    huge[0] = [1.7e308, -1e300, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", LowSignalWarning)
        one, other = (SSPRegressor(**settings, random_state=0).fit(rows, Y) for rows in (X, huge))
    assert np.linalg.norm(one.statistics_ - other.statistics_) <= math.sqrt(2)


def test_predictions_are_within_the_bounds() -> None:
    model = SSPRegressor(target_bounds=(-0.1, 0.1), random_state=0).fit(X, Y)
    assert np.abs(model.predict(100 * X)).max() == pytest.approx(0.1)


def test_refusals() -> None:
    for settings, words in (
        ({"epsilon": 1.0, "noise_multiplier": 1.0}, "None where noise_multiplier is given"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"noise_multiplier": 1e-3}, "noise_multiplier"),
        ({"delta": 1.0}, "delta"),
        ({"feature_bounds": (1, 0)}, "feature_bounds"),
        ({"feature_bounds": ([0, 0], [1, 1])}, "feature_bounds"),
        ({"feature_bounds": (0, 5e-324)}, "feature_bounds"),
        ({"target_bounds": (0, 5e-324)}, "target_bounds"),
        ({"feature_norm": 0.0}, "feature_norm"),
        ({"target_bounds": ([0.0], [1.0])}, "target_bounds"),
    ):
        model = SSPRegressor(**settings)
        with pytest.raises(InputError, match=words):
            model.fit(X, Y)
        assert not hasattr(model, "coef_")


@each_check([SSPRegressor(), SSPRegressor(noise_multiplier=0.1)])
def test_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
