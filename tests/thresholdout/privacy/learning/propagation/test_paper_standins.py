"""Generated data: exact posteriors, matched errors, and the forms of the stand-ins."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
from thresholdout.privacy.learning.propagation.paper_mixture import (
    aligned_f_norm,
    conditional_mog_posterior,
    make_mog_data,
)
from thresholdout.privacy.learning.propagation.paper_standins import (
    make_kin8_standin,
    make_linear_standin,
    make_naval_standin,
    make_wine_standin,
)

Floats = NDArray[np.float64]


def flat_prior(means: Floats, precision: float) -> GaussianNatural:
    Lam = precision * np.broadcast_to(np.eye(means.shape[1]), (len(means), means.shape[1], means.shape[1]))
    return GaussianNatural(precision * means, Lam)


def test_posterior_of_known_components_is_the_product_of_likelihoods() -> None:
    """Against the log joint density on a grid, for one component in one dimension."""
    data = make_mog_data(1, 30, 2, 1)
    found = conditional_mog_posterior(data.X, data.labels, flat_prior(np.array([[0.5], [-0.5]]), 0.1), 0.25)
    grid = np.linspace(-10, 10, 400_001)
    own = data.X[data.labels == 0, 0]
    log = -0.05 * (grid - 0.5) ** 2 - 2 * ((own[:, None] - grid[None]) ** 2).sum(axis=0)
    density = np.exp(log - log.max())
    density /= density.sum()
    mean = float(grid @ density)
    assert found.mean()[0, 0] == pytest.approx(mean, rel=1e-8)
    assert found.cov()[0, 0, 0] == pytest.approx(float((grid - mean) ** 2 @ density), rel=1e-6)


def test_erratum_14_a_covariance_for_a_precision_moves_the_means_by_a_percent() -> None:
    """A prior precision of 10 in place of 0.1 pulls each mean towards the prior's by (10 - 0.1) s2/n_j, about 1 %."""
    data = make_mog_data(60)
    right, wrong = (
        conditional_mog_posterior(data.X, data.labels, flat_prior(np.zeros((4, 4)), p), 0.25).mean()
        for p in (0.1, 10.0)
    )
    share = np.linalg.norm(right - wrong, axis=1) / np.linalg.norm(right, axis=1)
    assert ((share > 0.005) & (share < 0.02)).all()


def test_erratum_15_scales_of_component_means_differ() -> None:
    """Normal numbers about centres would have variance 1; the script's have |N(0, 1)| for a deviation in each."""
    means = np.stack([make_mog_data(seed, 1, 400, 4).means for seed in range(60)])
    deviations = means.std(axis=0)
    assert deviations.min() < 0.1
    assert deviations.max() > 2.0


@settings(derandomize=True, max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_matched_errors_do_not_depend_on_the_order_of_found_components(seed: int) -> None:
    """They are squared, which the paper's text does not say."""
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]]) + rng.normal(size=(3, 2)) / 2
    covs = np.stack([np.diag(rng.uniform(0.1, 1, 2)) for _ in range(3)])
    truth, shift = GaussianNatural.from_moments(means, covs), 0.01 * rng.normal(size=(3, 2))
    for order in itertools.permutations(range(3)):
        found = GaussianNatural.from_moments((means + shift)[list(order)], 1.1 * covs[list(order)])
        error = aligned_f_norm(found, truth, means)
        assert error[0] == pytest.approx(float((shift**2).sum(axis=1).mean()), rel=1e-6)
        assert error[1] == pytest.approx(float((0.01 * covs**2).sum(axis=(1, 2)).mean()), rel=1e-6)


def test_arm_by_complex_numbers() -> None:
    X, y = make_kin8_standin(50, 4)
    np.testing.assert_array_equal(X, np.random.default_rng(4).uniform(-np.pi / 4, np.pi / 4, (50, 8)))
    hand = np.exp(1j * X.cumsum(axis=1)).sum(axis=1) / 8
    np.testing.assert_allclose(y, np.abs(hand - (0.5 + 0.25j)), rtol=1e-12)
    assert make_kin8_standin(7372, 0)[1].std() == pytest.approx(0.2515, rel=0.05)


def test_forms_of_the_others() -> None:
    for (X, y), shape in (
        (make_naval_standin(), (11934, 16)),
        (make_wine_standin(), (1599, 11)),
        (make_linear_standin(), (20_000, 5)),
    ):
        assert X.shape == shape
        assert y.shape == shape[:1]
        assert np.isfinite(y).all()
    X, y = make_linear_standin(20_000, 3)
    residual = np.linalg.lstsq(X, y, rcond=None)[1]
    assert residual[0] / 20_000 == pytest.approx(0.25, rel=0.05)
    np.testing.assert_array_equal(make_wine_standin(50, 2)[1], make_wine_standin(50, 2)[1])
    assert (make_wine_standin(50, 2)[1] != make_wine_standin(50, 3)[1]).any()


def test_bad_input() -> None:
    with pytest.raises(InputError, match="labels"):
        conditional_mog_posterior(np.array([[1.0]]), np.array([1]), flat_prior(np.zeros((1, 1)), 1.0), 1.0)
    with pytest.raises(InputError, match="n: "):
        make_kin8_standin(0)
