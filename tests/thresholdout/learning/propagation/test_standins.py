"""Generated data: exact posteriors, matched errors, and the forms of the stand-ins."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresholdout.errors import InputError
from thresholdout.learning.propagation.gaussian import GaussianNatural
from thresholdout.learning.propagation.standins import (
    aligned_f_norm,
    conditional_mog_posterior,
    make_kin8_standin,
    make_linear_standin,
    make_mog_data,
    make_naval_standin,
    make_wine_standin,
)


def test_posterior_of_known_components_is_the_product_of_likelihoods() -> None:
    """Against the log joint density on a grid, for one component in one dimension."""
    data = make_mog_data(1, 30, components=2, dimension=1)
    found = conditional_mog_posterior(
        data.X, data.labels, prior_mean=[[0.5], [-0.5]], prior_precision=0.1, noise_var=0.25
    )
    grid = np.linspace(-10, 10, 400_001)
    own = data.X[data.labels == 0, 0]
    log = -0.05 * (grid - 0.5) ** 2 - 2 * ((own[:, None] - grid[None, ::1]) ** 2).sum(axis=0)
    density = np.exp(log - log.max())
    density /= density.sum()
    mean = float(grid @ density)
    assert found.mean()[0, 0] == pytest.approx(mean, rel=1e-8)
    assert found.cov()[0, 0, 0] == pytest.approx(float((grid - mean) ** 2 @ density), rel=1e-6)


def test_erratum_14_a_covariance_for_a_precision_moves_the_means_by_a_percent() -> None:
    """A prior precision of 10 in place of 0.1 pulls each mean towards the prior's by (10 - 0.1) s2/n_j, about 1 %."""
    data = make_mog_data(60)
    prior = np.zeros((4, 4))
    right, wrong = (
        conditional_mog_posterior(data.X, data.labels, prior_mean=prior, prior_precision=p, noise_var=0.25).mean()
        for p in (0.1, 10.0)
    )
    share = np.linalg.norm(right - wrong, axis=1) / np.linalg.norm(right, axis=1)
    assert ((share > 0.005) & (share < 0.02)).all()


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_matched_errors_do_not_depend_on_the_order_of_found_components(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, covs = 5 * rng.normal(size=(3, 2)), np.stack([np.diag(rng.uniform(0.1, 1, 2)) for _ in range(3)])
    truth = GaussianNatural.from_moments(means, covs)
    shift = 0.01 * rng.normal(size=(3, 2))
    expected = float((shift**2).sum(axis=1).mean())
    for order in itertools.permutations(range(3)):
        found = GaussianNatural.from_moments((means + shift)[list(order)], 1.1 * covs[list(order)])
        error = aligned_f_norm(truth, found)
        if min(np.linalg.norm(means[i] - means[j]) for i, j in ((0, 1), (0, 2), (1, 2))) > 0.2:
            assert error.mean == pytest.approx(expected, rel=1e-6)  # squared, not the distance itself
            assert error.cov == pytest.approx(float((0.01 * covs**2).sum(axis=(1, 2)).mean()), rel=1e-6)
            assert [order[j] for j in error.order] == [0, 1, 2]
        assert error.average == pytest.approx((error.mean + error.cov) / 2)


def test_spread_of_component_means() -> None:
    """Erratum 15: the script's scales differ between coordinates, the text's do not."""
    unit, script = (make_mog_data(3, 5, components=400, spread=spread).means for spread in ("unit", "script"))
    assert unit.var() == pytest.approx(2, rel=0.15)
    kurtosis = [float(((m - m.mean()) ** 4).mean() / m.var() ** 2) for m in (unit, script)]
    assert kurtosis[0] == pytest.approx(3, abs=0.5)
    assert kurtosis[1] > kurtosis[0] + 0.5


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
    residual = np.linalg.lstsq(X, y)[1]
    assert residual[0] / 20_000 == pytest.approx(0.25, rel=0.05)
    np.testing.assert_array_equal(make_wine_standin(50, 2)[1], make_wine_standin(50, 2)[1])
    assert (make_wine_standin(50, 2)[1] != make_wine_standin(50, 3)[1]).any()


def test_bad_input() -> None:
    with pytest.raises(InputError, match="labels"):
        conditional_mog_posterior([[1.0]], [1], prior_mean=[[0.0]], prior_precision=1.0, noise_var=1.0)
    with pytest.raises(InputError, match="prior_mean"):
        conditional_mog_posterior([[1.0]], [0], prior_mean=[[0.0, 1.0]], prior_precision=1.0, noise_var=1.0)
    with pytest.raises(InputError, match="found"):
        aligned_f_norm(GaussianNatural([[0.0]], [[[1.0]]]), GaussianNatural([[0.0]], [[1.0]]))
    with pytest.raises(InputError, match="spread"):
        make_mog_data(spread="wide")
    with pytest.raises(InputError, match="n: "):
        make_kin8_standin(0)
