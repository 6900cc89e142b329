"""Mixtures from statistics and probabilities from mixtures, against scikit-learn and scipy; what noise does to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.mixture._gaussian_mixture import _estimate_gaussian_parameters

from tests.cases import for_each
from thresholdout.privacy.learning.dpem.record_statistics import (
    COVARIANCE_TYPES,
    MixtureParameters,
    Prior,
    log_joint,
    maximize,
    on_grid,
    responsibilities,
    statistics_sum,
)

SHARES = (0.25, 0.5, 0.25)
RNG = np.random.default_rng(0)
ROWS = on_grid(RNG.normal(size=(300, 3)), 4.0)


def covariances(kind: str) -> Any:
    root = RNG.normal(size=(2, 3, 3)) / 5
    full = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(3)
    return {"spherical": full[:, 0, 0], "diag": full[:, range(3), range(3)], "full": full}[kind]


@for_each("kind", COVARIANCE_TYPES)
def test_without_noise_it_is_the_step_of_scikit_learn(kind: Any) -> None:
    r = RNG.dirichlet(np.ones(2), len(ROWS))
    far = Prior(300.0, np.ones(3), np.asarray(covariances(kind)[0]))  # it weighs nothing
    found = maximize(statistics_sum(ROWS, r, kind), 0.0, kind, SHARES, 1e-9, far)
    counts, means, expected = _estimate_gaussian_parameters(ROWS, r, 1e-12, kind)
    np.testing.assert_allclose(found.weights, counts / 300, atol=1e-4)  # probabilities were cut to multiples of 4e-6
    np.testing.assert_allclose(found.means, means, atol=1e-4)
    np.testing.assert_allclose(found.covariances, expected, atol=1e-4)


@for_each("kind", COVARIANCE_TYPES)
def test_densities_are_those_of_scipy(kind: Any) -> None:
    weights, means, given = np.array([0.3, 0.7]), RNG.normal(size=(2, 3)), covariances(kind)
    mixture = MixtureParameters(weights, means, given)
    each = [
        np.log(weights[k])
        + multivariate_normal(means[k], np.eye(3) * given[k] if kind != "full" else given[k]).logpdf(ROWS)
        for k in range(2)
    ]
    np.testing.assert_allclose(log_joint(ROWS, mixture), np.transpose(each), rtol=1e-10)
    expected = np.exp(each[0]) / (np.exp(each[0]) + np.exp(each[1]))
    np.testing.assert_allclose(responsibilities(ROWS, mixture)[:, 0], expected, atol=1e-12)


def test_a_record_far_from_all_components_has_probabilities() -> None:
    narrow = MixtureParameters(np.array([0.5, 0.5]), np.array([[0.9], [0.8]]), np.full(2, 1e-12))
    found = responsibilities(np.array([[-1.0]]), narrow)
    np.testing.assert_array_equal(found, [[0.0, 1.0]])


@for_each("kind", COVARIANCE_TYPES)
def test_whatever_noise_does_a_mixture_comes_of_it(kind: Any) -> None:
    """Negative counts, negative squares, and noise alone: weights, means in the ball, covariances that are some."""
    width = {"spherical": 5, "diag": 7, "full": 10}[kind]
    rng = np.random.default_rng(1)
    prior = Prior(100.0, np.zeros(3), np.asarray(covariances(kind)[0]))
    for noise in (0.0, 1.0, 1e4):
        for given in (None, prior):
            noisy = noise * 2 * rng.standard_normal((5, width))
            found = maximize(noisy, noise, kind, SHARES, 1e-6, given)
            assert (found.weights > 0).all()
            assert found.weights.sum() == pytest.approx(1.0)
            assert (np.linalg.norm(found.means, axis=1) <= 1 + 1e-12).all()
            values = np.linalg.eigvalsh(found.covariances) if kind == "full" else found.covariances
            assert (values >= 0.99e-6).all()
            assert (values <= 1 + 1e-9).all()
            assert np.isfinite(log_joint(ROWS, found)).all()


def test_a_component_of_noise_alone_stays_by_the_prior() -> None:
    """A mean moves from the prior's by about a third of the clipping norm."""
    rng = np.random.default_rng(2)
    prior = Prior(100.0, np.array([0.3, -0.2]), np.asarray(0.04))
    noisy = 7.0 * np.array([0.0, 2**0.5, 2**0.5, 0.0]) * rng.standard_normal((4000, 4))
    means = maximize(noisy, 7.0, "spherical", SHARES, 1e-6, prior).means
    np.testing.assert_allclose(means.mean(axis=0), prior.mean, atol=0.02)
    assert np.sqrt(np.square(means - prior.mean).sum(axis=1).mean()) == pytest.approx(1 / 3, rel=0.05)
