"""Private posteriors whose predictions are noise say so, by what is released."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.privacy.learning import EPLinearRegression, LowSignalWarning
from thresholdout.privacy.learning.propagation.ep_privacy import noise_of_predictions
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.normal(0, 0.5, 300)


def fitted(rows: np.ndarray, **more: Any) -> EPLinearRegression:
    settings: dict[str, Any] = {"clip_norm": 5.0, "sigma": 0.2, "noise_var": 0.25, "n_epochs": 2, "random_state": 2}
    return EPLinearRegression(algorithm="dp-sep", **{**settings, **more}).fit(rows, Y)


@for_each(("s", "t"), [(2.0, 0.5), (0.5, 2.0)])
def test_the_share_of_noise_by_simulation(s: float, t: float) -> None:
    """Noise is drawn, the mean taken anew, and what it adds to predictions for the records that were learned from."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4000, 3)) * [1.0, 0.5, 2.0]
    prior = GaussianNatural(np.zeros(3), np.eye(3))
    precision = prior.Lam + rows.T @ rows
    mean = np.array([1.0, -2.0, 0.3])
    posterior = GaussianNatural(precision @ mean, precision)
    upper = np.triu(t * rng.normal(size=(4000, 3, 3)))
    symmetric = upper + np.triu(upper, 1).swapaxes(1, 2)
    noisy = posterior.eta + s * rng.normal(size=(4000, 3))
    moved = np.linalg.solve(precision + symmetric, noisy[..., None])[..., 0]
    added = np.sum(((moved - mean) @ rows.T) ** 2, axis=1)
    expected = np.mean(added) / np.sum((rows @ mean) ** 2)
    assert noise_of_predictions(posterior, prior, s, t) == pytest.approx(expected, rel=0.08)


def test_nothing_learned_is_noise_alone() -> None:
    prior = GaussianNatural([0.0], [[1.0]])
    assert noise_of_predictions(GaussianNatural([1.0], [[0.5]]), prior, 1.0, 1.0) == math.inf


@pytest.mark.slow
def test_a_feature_that_is_too_short_for_the_noise_is_warned_of_and_a_scaled_one_is_none() -> None:
    short = X * [1.0, 1.0, 0.01]
    with pytest.warns(LowSignalWarning, match=r"Noise adds .*x_scale"):
        found = fitted(short)
    assert found.score(short, Y) < -1.0
    assert found.signal_to_noise_ > 3.0  # the other features moved the posterior
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        scaled = fitted(short, x_scale=[1.0, 1.0, 0.01])
    assert scaled.score(short, Y) > 0.5


def test_separate_clipping_is_warned_of_as_well() -> None:
    with pytest.warns(LowSignalWarning, match="Noise adds"):
        assert fitted(X * [1.0, 1.0, 0.01], clip_mode="separate", sigma=(0.2, 0.2)).score(X, Y) < -1.0
